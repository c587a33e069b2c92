//! The readers of the store: so many at a time, so many that wait, and so long.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use store::{Reader, StoreError};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::error;

use super::answer::Problem;
use super::metrics::Counts;
use crate::config::CollectorLimits;

/// Reads the store from threads that may block.
// SEQ-7.10
#[derive(Debug)]
pub(super) struct Pool {
    database: PathBuf,
    idle: Arc<Mutex<Vec<Reader>>>,
    /// A permit for each request that reads or waits.
    entered: Arc<Semaphore>,
    /// A permit for each that reads.
    reading: Arc<Semaphore>,
    patience: Duration,
    counts: Arc<Counts>,
}

/// Tells a query that nobody waits for it any more.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Pool {
    pub fn new(database: PathBuf, limits: &CollectorLimits, counts: Arc<Counts>) -> Self {
        let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let (reading, waiting) =
            (size(limits.http_queries_max), size(limits.http_queries_waiting_max));
        Self {
            database,
            idle: Arc::default(),
            entered: Arc::new(Semaphore::new(reading + waiting)),
            reading: Arc::new(Semaphore::new(reading)),
            patience: Duration::from_millis(limits.http_query_timeout_ms),
            counts,
        }
    }

    /// What a query finds.
    ///
    /// # Errors
    /// Too many wait, it took too long, or the store could not be read.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let deadline = Instant::now() + self.patience;
        let Ok(entered) = self.entered.clone().try_acquire_owned() else {
            Counts::count(&self.counts.queries_refused);
            let detail =
                "too many requests wait to read the store, limits.http_queries_waiting_max";
            return Err(Problem::busy(detail));
        };
        let Ok(Ok(reading)) = timeout_at(deadline, self.reading.clone().acquire_owned()).await
        else {
            return Err(self.given_up());
        };
        let gone = Arc::new(AtomicBool::new(false));
        let waiting = Waiting(gone.clone());
        let (idle, database) = (self.idle.clone(), self.database.clone());
        let done = tokio::task::spawn_blocking(move || {
            let _places = (entered, reading);
            let reader = match locked(&idle).pop() {
                Some(reader) => reader,
                None => Reader::open(&database)?,
            };
            let over = move || gone.load(Relaxed) || Instant::now() >= deadline;
            reader.give_up_when(over);
            let found = query(&reader);
            if !matches!(found, Err(StoreError::Database { .. })) {
                locked(&idle).push(reader);
            }
            found
        });
        // A thread that the system holds up is not waited for.
        let Ok(done) = timeout_at(deadline, done).await else { return Err(self.given_up()) };
        drop(waiting);
        match done {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(StoreError::GivenUp { .. })) => Err(self.given_up()),
            Ok(Err(problem)) => {
                error!("HTTP: the store cannot be read: {problem}");
                Err(failed())
            }
            Err(_) => Err(failed()),
        }
    }

    fn given_up(&self) -> Problem {
        Counts::count(&self.counts.queries_given_up);
        Problem::busy(format!(
            "the store was not read within {} ms, limits.http_query_timeout_ms",
            self.patience.as_millis()
        ))
    }
}

/// What is wrong is in the collector's log: it is not for everyone who reads.
fn failed() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the store cannot be read")
}

/// Readers stay good whatever a thread did that had this lock.
fn locked(readers: &Mutex<Vec<Reader>>) -> std::sync::MutexGuard<'_, Vec<Reader>> {
    readers.lock().unwrap_or_else(PoisonError::into_inner)
}
