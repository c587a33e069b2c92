//! What can go wrong with what is kept. A full disk is told from everything else, because it
//! passes: intake stops, and goes on when there is room.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why nothing was written or read. A change that failed is not there in part.
#[derive(Debug)]
pub enum StoreError {
    /// There is no room on the disk, within a quota, or within the configured limit.
    DiskFull {
        /// What had no room.
        path: PathBuf,
    },
    /// Another process writes here.
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The database is of another version of the program.
    Version {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that this program writes.
        expected: i64,
    },
    /// The database refused.
    Database {
        /// The database.
        path: PathBuf,
        /// What it said.
        error: rusqlite::Error,
    },
    /// Reading was given up: see [`crate::Reader::give_up_when`].
    GivenUp {
        /// The database.
        path: PathBuf,
    },
    /// A file or a directory refused.
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Something is kept that this program does not write.
    Content {
        /// Where.
        path: PathBuf,
        /// What.
        what: String,
    },
}

impl StoreError {
    /// Whether it is over when there is room again.
    #[must_use]
    pub const fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }

    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.to_owned();
        match error.kind() {
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::DiskFull { path },
            _ => Self::File { path, error },
        }
    }

    pub(crate) fn database(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::GivenUp { path },
            _ => Self::Database { path, error },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull { path } => write!(f, "{}: no room left on the disk", path.display()),
            Self::InUse { path } => {
                write!(f, "{}: another process writes here, expected none", path.display())
            }
            Self::Version { path, found, expected } => {
                write!(f, "{}: version {found}, expected {expected}", path.display())
            }
            Self::GivenUp { path } => write!(f, "{}: reading was given up", path.display()),
            Self::Database { path, error } => write!(f, "{}: {error}", path.display()),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Content { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for StoreError {}
