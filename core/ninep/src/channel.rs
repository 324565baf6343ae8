//! A client with a transport.

use crate::client::{ReplyError, SubmitError, Tag};
use crate::reply::Reply;
use crate::request::Request;

/// Carries requests to a server and brings its replies. Nothing here waits: who waits for
/// a tag is woken by whoever completes.
pub trait Channel {
    /// What the volume is called: virtio's mount tag.
    fn name(&self) -> &[u8];

    /// The largest message; a read or a write moves
    /// [`IO_HEADER_BYTES`](crate::IO_HEADER_BYTES) less.
    fn msize(&self) -> usize;

    /// Sends a request.
    fn submit(&mut self, request: &Request<'_>) -> Result<Tag, SubmitError>;

    /// Passes on all replies that have come, each with the tag that it answers; returns
    /// how many. A tag that was passed on is free.
    fn complete(&mut self, sink: &mut dyn FnMut(Tag, Result<Reply<'_>, ReplyError>)) -> usize;

    /// Asks for an interrupt at the next reply. Returns whether replies are waiting
    /// already, for which none may come: complete them and arm again.
    fn arm(&mut self) -> bool;
}
