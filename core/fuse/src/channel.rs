//! A client with a transport.

use crate::client::{ReplyError, SubmitError, Tag};
use crate::reply::Reply;
use crate::request::Call;

/// Carries requests to a server and brings its replies. Nothing here waits: who waits for
/// a tag is woken by whoever completes.
pub trait Channel {
    /// What the file system is called: virtio's tag.
    fn name(&self) -> &[u8];

    /// The most bytes of data in one message, either way.
    fn data_bytes_max(&self) -> usize;

    /// Sends a request.
    fn submit(&mut self, call: &Call<'_>) -> Result<Tag, SubmitError>;

    /// Passes on all replies that have come, each with the tag that it answers; returns
    /// how many. A tag that was passed on is free.
    fn complete(&mut self, sink: &mut dyn FnMut(Tag, Result<Reply<'_>, ReplyError>)) -> usize;

    /// Asks for an interrupt at the next reply. Returns whether replies are waiting
    /// already, for which none may come: complete them and arm again.
    fn arm(&mut self) -> bool;
}
