//! What a connection tells the journal.

use wire::TcpFlags;

use super::tcb::Tcb;
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::Env;
use crate::journal::What;

impl Tcb {
    /// Something happened that somebody may look for.
    pub(super) fn note<E: Env>(&self, cx: &mut Context<'_, E>, what: What) {
        let journal = &mut cx.net.journal;
        journal.note(cx.now, what, self.state, TcpFlags(0), &self.tuple);
    }

    /// A segment of this connection is dropped.
    pub(super) fn drop_segment<E: Env>(&self, cx: &mut Context<'_, E>, reason: DropReason) {
        cx.net.drop(reason);
        self.note(cx, What::Drop(reason));
    }
}
