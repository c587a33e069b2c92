//! A stream whose other side has to take what is written to it in time. Without it, a reader that
//! takes an octet now and then could hold a connection and an answer for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream with a time for each answer, counted from its first octet until all of it is with the
/// system.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    within: Duration,
    timer: Pin<Box<Sleep>>,
    writing: bool,
}

impl<S> Paced<S> {
    pub fn new(stream: S, within: Duration) -> Self {
        Self { stream, within, timer: Box::pin(sleep(within)), writing: false }
    }

    fn begin(&mut self) {
        if !self.writing {
            self.writing = true;
            self.timer.as_mut().reset(Instant::now() + self.within);
        }
    }

    /// A write that is not done is an error where its time is over.
    fn unless_late<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if done.is_pending() && self.writing && self.timer.as_mut().poll(context).is_ready() {
            let problem = "the answer was not taken in time";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
        }
        done
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.begin();
        let done = Pin::new(&mut self.stream).poll_write(context, octets);
        self.unless_late(done, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.begin();
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, octets);
        self.unless_late(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        if done.is_ready() {
            self.writing = false;
        }
        self.unless_late(done, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.begin();
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.unless_late(done, context)
    }
}
