//! A cable between exporters and a collector that can be cut.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens at one port, and connects to wherever the collector is at the time.
pub struct Cable {
    pub port: u16,
    to: Arc<AtomicU16>,
    live: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cable {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("bound").port();
        let (to, live) = (Arc::new(AtomicU16::new(0)), Arc::new(Mutex::new(Vec::new())));
        let cable = Self { port, to: to.clone(), live: live.clone() };
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // Nobody there: the connection ends at once.
                _ = joined(near, to.load(Ordering::SeqCst), &live);
            }
        });
        cable
    }

    /// From now on the collector is at this port.
    pub fn leads_to(&self, port: u16) {
        self.to.store(port, Ordering::SeqCst);
    }

    /// Cuts every connection, in the middle of whatever is under way.
    pub fn cut(&self) {
        for stream in self.live.lock().expect("not poisoned").drain(..) {
            _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn joined(near: TcpStream, port: u16, live: &Mutex<Vec<TcpStream>>) -> io::Result<()> {
    let far = TcpStream::connect(("127.0.0.1", port))?;
    let mut all = live.lock().expect("not poisoned");
    for (from, to) in [(&near, &far), (&far, &near)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        all.push(from.try_clone()?);
        thread::spawn(move || {
            _ = io::copy(&mut from, &mut to);
            // What ends on one side ends on the other, in the same direction.
            _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
