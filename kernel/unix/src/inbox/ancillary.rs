//! What comes with bytes: who sent them, and descriptors.

use crate::rights::Rights;
use sockets::CommonOptions;
use sync::Result;
use task::current;
use vfs::socket::{Control, OptionName, PeerCredentials, Received, UnixAddress};

/// What comes with bytes.
#[derive(Default)]
pub(crate) struct Ancillary {
    pub(crate) from: Option<UnixAddress>,
    pub(super) credentials: Option<PeerCredentials>,
    pub(super) rights: Option<Rights>,
}

impl Ancillary {
    /// Without a name: what `control` gives, and who calls if the receiver wants to know.
    pub(crate) fn new(control: Control, is_wanted: bool) -> Result<Self> {
        let rights = match control.files.is_empty() {
            true => None,
            false => Some(Rights::new(control.files)?),
        };
        Ok(Self {
            from: None,
            credentials: control.credentials.or_else(|| is_wanted.then(caller)),
            rights,
        })
    }

    /// It lies in the queue of the socket `owner` now.
    pub(super) fn lie_with(&mut self, owner: u64) {
        if let Some(rights) = &mut self.rights {
            rights.put(owner);
        }
    }

    pub(super) fn open(self) -> Control {
        let files = self.rights.map(Rights::open).unwrap_or_default();
        Control {
            files,
            credentials: self.credentials,
            ..Control::default()
        }
    }

    pub(super) fn peek(&self) -> Control {
        let files = self.rights.as_ref().map(Rights::peek).unwrap_or_default();
        Control {
            files,
            credentials: self.credentials,
            ..Control::default()
        }
    }
}

/// Leaves a received message the credentials that its receiver wants (SO_PASSCRED): those of a
/// message that was sent before anybody wanted them are nobody's.
pub(crate) fn tell_credentials(options: &CommonOptions, received: &mut Received) {
    let known = received.control.credentials;
    let is_wanted = options.is_set(OptionName::PassCredentials);
    received.control.credentials = is_wanted.then(|| known.unwrap_or(PeerCredentials::UNNOTED));
}

/// Who calls.
fn caller() -> PeerCredentials {
    let thread = current();
    let credentials = thread.credentials.get();
    PeerCredentials {
        pid: thread.process.id(),
        uid: credentials.user.effective,
        gid: credentials.group.effective,
    }
}
