//! The protocol on a link (`fs_host`).

use alloc::boxed::Box;

use fs_host::{Carrier, Refused, Replies};
use ninep::{Channel, Request, SubmitError};

use super::answer::Answer;

/// A channel that threads share.
pub(super) type Link = fs_host::Link<Carried>;

/// The device's driver.
pub(super) struct Carried(pub Box<dyn Channel + Send>);

impl Carrier for Carried {
    type Request<'a> = Request<'a>;
    type Answer = Answer;

    fn name(&self) -> &[u8] {
        self.0.name()
    }

    fn submit(&mut self, request: &Request<'_>) -> Result<usize, Refused> {
        let tag = self.0.submit(request).map_err(|error| match error {
            SubmitError::Busy => Refused::Busy,
            SubmitError::NoMemory => Refused::NoMemory,
            SubmitError::TooLarge => Refused::TooLarge,
            SubmitError::Broken => Refused::Broken,
        })?;
        Ok(tag.index())
    }

    fn complete(&mut self, replies: Replies<'_, Answer>) {
        self.0
            .complete(&mut |tag, reply| replies(tag.index(), Answer::of(reply)));
    }

    fn arm(&mut self) -> bool {
        self.0.arm()
    }
}
