//! The statistics of a network driver, as `ethtool -S` shows them: three requests behind one
//! `ioctl` of a socket. Their names exist behind this call alone; netlink has other statistics.
//!
//! The kernel writes as many names and values as the driver has at that moment, whatever was asked
//! for, and a driver may have more of them than a moment ago. So the room is never that of a count
//! that was read before but the greatest there is, and what a driver beyond it says is not asked
//! for at all.

use std::ffi::c_void;
use std::io;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `SIOCETHTOOL` (linux/sockios.h).
const SIOCETHTOOL: Opcode = 0x8946;
/// Requests and the set of statistics (linux/ethtool.h).
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const SET_OF_STATISTICS: u32 = 1;
/// Octets of a name.
const NAME_LEN: usize = 32;
/// Octets of `struct ethtool_drvinfo`, and where in it the number of statistics stands.
const DRIVER_LEN: usize = 196;
const DRIVER_STATISTICS_AT: usize = 180;

/// Statistics of one driver that are asked for. Those with thousands of queues have tens of
/// thousands; the room is twice as large, so that none grows out of it between two requests.
pub const STATISTICS_MAX: usize = 1 << 17;
const ROOM: usize = 2 * STATISTICS_MAX;

/// What a driver says of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Its name.
    pub driver: String,
    /// The names of its statistics, blanks at their ends taken off.
    pub names: Vec<String>,
    /// The values, in the order of the names.
    pub values: Vec<u64>,
}

/// Whose driver is asked: memory that lasts for all requests.
pub struct Asker {
    /// Eight octets of head and as many values as there is room for.
    room: Vec<u64>,
}

impl Asker {
    /// Memory that nobody touches costs nothing.
    pub fn new() -> Self {
        // Names take four times the room of values.
        Self { room: vec![0; 2 + ROOM * NAME_LEN / 8] }
    }

    /// The driver of an interface, its statistics and their names.
    ///
    /// # Errors
    /// What the kernel says, or that the driver has too many, or others than a moment before.
    pub fn ask(&mut self, interface: &str) -> io::Result<Statistics> {
        let (driver, count) = self.driver(interface)?;
        if count == 0 {
            return Ok(Statistics { driver, ..Statistics::default() });
        }
        if count > STATISTICS_MAX {
            let problem = format!("{count} statistics, expected at most {STATISTICS_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        let names = self.names(interface, count)?;
        let values = self.values(interface, count)?;
        // A driver that shows counters of what is enabled changes their order when that changes.
        if self.names(interface, count)? != names || values.len() != names.len() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(Statistics { driver, names, values })
    }

    fn driver(&mut self, interface: &str) -> io::Result<(String, usize)> {
        self.room[..=DRIVER_LEN / 8].fill(0);
        self.set(0, GET_DRIVER);
        request(interface, &mut self.room)?;
        let octets = self.octets(DRIVER_LEN);
        let name = text(&octets[4..4 + NAME_LEN]);
        let count = &octets[DRIVER_STATISTICS_AT..DRIVER_STATISTICS_AT + 4];
        Ok((name, size(u32::from_ne_bytes([count[0], count[1], count[2], count[3]]))))
    }

    fn names(&mut self, interface: &str, count: usize) -> io::Result<Vec<String>> {
        self.room[..2].fill(0);
        self.set(0, GET_STRINGS);
        self.set(1, SET_OF_STATISTICS);
        self.set(2, u32::try_from(count).unwrap_or(0));
        request(interface, &mut self.room)?;
        let count = size(self.get(2)).min(STATISTICS_MAX);
        let octets = self.octets(12 + count * NAME_LEN);
        Ok(octets[12..].chunks_exact(NAME_LEN).map(text).collect())
    }

    fn values(&mut self, interface: &str, count: usize) -> io::Result<Vec<u64>> {
        self.set(0, GET_STATISTICS);
        self.set(1, u32::try_from(count).unwrap_or(0));
        request(interface, &mut self.room)?;
        let count = size(self.get(1)).min(STATISTICS_MAX);
        Ok(self.room[1..=count].to_vec())
    }

    /// Sets one of the numbers of 32 bits at the beginning.
    fn set(&mut self, index: usize, value: u32) {
        let mut octets = self.room[index / 2].to_ne_bytes();
        let at = index % 2 * 4;
        octets[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self.room[index / 2] = u64::from_ne_bytes(octets);
    }

    fn get(&self, index: usize) -> u32 {
        let octets = self.room[index / 2].to_ne_bytes();
        let at = index % 2 * 4;
        u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
    }

    fn octets(&self, len: usize) -> Vec<u8> {
        let words = self.room[..len.div_ceil(8)].iter();
        let mut octets: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        octets.truncate(len);
        octets
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// What stands before the first zero, without the blanks that some drivers fill their names with.
fn text(octets: &[u8]) -> String {
    let end = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    String::from_utf8_lossy(&octets[..end]).trim_end().to_owned()
}

/// `struct ifreq` as far as `SIOCETHTOOL` knows it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    data: *mut c_void,
    /// The union behind the name is as large as its largest member.
    rest: [u8; 16],
}

struct Call(Request);

// SAFETY: the opcode is that of `SIOCETHTOOL`, whose argument is a `struct ifreq` with the name of
// an interface, ended by a zero, and a pointer. The kernel reads no more than the structure, writes
// at most the memory behind the pointer, and keeps neither. A test asks for an interface that every
// machine has.
#[allow(unsafe_code)]
unsafe impl Ioctl for Call {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        SIOCETHTOOL
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Asks with what stands in `room`; the answer stands there afterwards.
#[allow(unsafe_code)]
fn request(interface: &str, room: &mut [u64]) -> io::Result<()> {
    assert!(room.len() >= 2 + ROOM * NAME_LEN / 8, "room for the longest answer");
    let mut name = [0; 16];
    // The last octet stays zero.
    if interface.len() >= name.len() || interface.as_bytes().contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of an interface"));
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let data = room.as_mut_ptr().cast();
    let call = Call(Request { name, data, rest: [0; 16] });
    // SAFETY: `room` is borrowed for the whole call, is aligned for the values that are written
    // into it, and has room for twice as many names or values as a driver may have had when it was
    // asked; all of the octets that are read later are initialised.
    unsafe { ioctl(socket, call) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_interface_is_asked() {
        let statistics = Asker::new().ask("lo");
        // Older kernels know no driver of it, newer ones one without statistics.
        match statistics {
            Ok(found) => assert_eq!(found.names.len(), found.values.len()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_said() {
        let error = Asker::new().ask("rocescope-no").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(19), "{error}");
        assert!(Asker::new().ask("a-name-that-is-too-long").is_err());
    }

    #[test]
    fn blanks_behind_a_name_are_none_of_it() {
        assert_eq!(text(b"tx_ppp0_frames         \0\0\0"), "tx_ppp0_frames");
        assert_eq!(text(b"mac_rx\0rest"), "mac_rx");
        assert_eq!(text(b"full"), "full");
    }
}
