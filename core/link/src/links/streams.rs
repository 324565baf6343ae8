//! Streams: opening, binding, groups, promiscuity, closing.

use alloc::vec::Vec;

use wire::MacAddr;

use super::{LinkError, Links};
use crate::open::{Claim, Hold, Mode, OpenError, Sap};
use crate::promisc::Promiscuity;
use crate::table::{LinkId, StreamId};

/// Groups that one stream takes part in.
pub const MULTICASTS_MAX: usize = 64;

/// One user's hold on a link.
pub(crate) struct Stream {
    pub link: LinkId,
    pub claim: Claim,
    /// Frames of every protocol are for it, whatever it is bound to.
    pub takes_all: bool,
    pub promiscuity: Promiscuity,
    pub multicasts: Vec<MacAddr>,
}

impl Links {
    /// A stream on a link, uninitialised.
    pub fn open(&mut self, link: LinkId) -> Result<StreamId, LinkError> {
        let over = self.link(link).ok_or(LinkError::NotFound)?.over;
        let stream = Stream {
            link,
            claim: Claim::default(),
            takes_all: false,
            promiscuity: Promiscuity::empty(),
            multicasts: Vec::new(),
        };
        let inserted = self.streams.insert(stream);
        let (index, generation) = inserted.ok_or(LinkError::TooMany)?;
        self.publish(over);
        Ok(StreamId { index, generation })
    }

    /// Gives up a stream and all that it holds.
    pub fn close(&mut self, id: StreamId) -> Result<(), LinkError> {
        let gone = self.streams.remove(id.index, id.generation);
        let mut gone = gone.ok_or(LinkError::NotFound)?;
        let Some(link) = self.link_mut(gone.link) else {
            return Ok(());
        };
        gone.claim.close(&mut link.hold);
        let over = link.over;
        // A card that keeps a filter or its mode sends us frames that nobody takes.
        let _ = self.sync_multicasts(over);
        let _ = self.sync_listening(over);
        self.publish(over);
        Ok(())
    }

    /// The link that a stream is on.
    pub fn link_of(&self, id: StreamId) -> Option<LinkId> {
        Some(self.stream(id)?.link)
    }

    /// What a stream is.
    pub fn mode(&self, id: StreamId) -> Option<Mode> {
        Some(self.stream(id)?.claim.mode())
    }

    /// Who holds a link.
    pub fn hold(&self, link: LinkId) -> Option<Hold> {
        Some(self.link(link)?.hold)
    }

    /// The stream only watches.
    pub fn set_passive(&mut self, id: StreamId) -> Result<(), LinkError> {
        self.with_claim(id, |claim, _| claim.become_passive())
    }

    /// The stream has the link to itself.
    pub fn set_exclusive(&mut self, id: StreamId) -> Result<(), LinkError> {
        self.with_claim(id, Claim::become_exclusive)
    }

    /// The stream takes frames of a protocol.
    pub fn bind(&mut self, id: StreamId, sap: Sap) -> Result<(), LinkError> {
        let link = self.stream(id).ok_or(LinkError::NotFound)?.link;
        let others = self.streams.iter().filter(|(index, _, stream)| {
            let is_passive = stream.claim.mode() == Mode::Passive;
            stream.link == link && *index != id.index && !is_passive
        });
        let others: Vec<Sap> = others
            .flat_map(|(.., stream)| stream.claim.saps().iter().copied())
            .collect();
        self.with_claim(id, |claim, hold| claim.bind(hold, sap, others))
    }

    /// The stream takes them no longer.
    pub fn unbind(&mut self, id: StreamId, sap: Sap) -> Result<(), LinkError> {
        self.with_claim(id, |claim, _| claim.unbind(sap))
    }

    /// The stream takes frames of every protocol beside those that it is bound to, or no longer.
    /// Others still take theirs.
    pub fn take_all(&mut self, id: StreamId, on: bool) -> Result<(), LinkError> {
        let stream = self.streams.get_mut(id.index, id.generation);
        let stream = stream.ok_or(LinkError::NotFound)?;
        stream.takes_all = on;
        let over = self
            .link_of(id)
            .and_then(|link| Some(self.link(link)?.over));
        self.publish(over.ok_or(LinkError::NotFound)?);
        Ok(())
    }

    /// Changes a stream's claim and its link's hold together.
    fn with_claim(
        &mut self,
        id: StreamId,
        change: impl FnOnce(&mut Claim, &mut Hold) -> Result<(), OpenError>,
    ) -> Result<(), LinkError> {
        let stream = self.streams.get_mut(id.index, id.generation);
        let stream = stream.ok_or(LinkError::NotFound)?;
        let link = self
            .links
            .get_mut(stream.link.index, stream.link.generation);
        let link = link.ok_or(LinkError::NotFound)?;
        change(&mut stream.claim, &mut link.hold).map_err(LinkError::Open)?;
        let over = link.over;
        self.publish(over);
        Ok(())
    }

    /// The stream takes part in a group. It becomes active, if it has not decided.
    pub fn join(&mut self, id: StreamId, group: MacAddr) -> Result<(), LinkError> {
        if !group.is_multicast() || group == MacAddr::BROADCAST {
            return Err(LinkError::BadAddress);
        }
        let stream = self.stream(id).ok_or(LinkError::NotFound)?;
        if stream.multicasts.contains(&group) {
            return Ok(());
        }
        if stream.multicasts.len() == MULTICASTS_MAX {
            return Err(LinkError::TooMany);
        }
        self.with_claim(id, Claim::use_link)?;
        self.change_groups(id, |groups| groups.push(group))
    }

    /// The stream leaves a group.
    pub fn leave(&mut self, id: StreamId, group: MacAddr) -> Result<(), LinkError> {
        let stream = self.stream(id).ok_or(LinkError::NotFound)?;
        if !stream.multicasts.contains(&group) {
            return Err(LinkError::Open(OpenError::NotBound));
        }
        self.change_groups(id, |groups| groups.retain(|member| *member != group))
    }

    /// Changes a stream's groups, and the card's filters; if that refuses, neither.
    fn change_groups(
        &mut self,
        id: StreamId,
        change: impl FnOnce(&mut Vec<MacAddr>),
    ) -> Result<(), LinkError> {
        let stream = self.streams.get_mut(id.index, id.generation);
        let stream = stream.ok_or(LinkError::NotFound)?;
        let (link, old) = (stream.link, stream.multicasts.clone());
        change(&mut stream.multicasts);
        let over = self.link(link).ok_or(LinkError::NotFound)?.over;
        let told = self.sync_multicasts(over);
        if told.is_err()
            && let Some(stream) = self.streams.get_mut(id.index, id.generation)
        {
            stream.multicasts = old;
        }
        self.publish(over);
        told
    }

    /// Turns promiscuous levels and options on.
    pub fn promisc_on(&mut self, id: StreamId, on: Promiscuity) -> Result<(), LinkError> {
        let stream = self.stream(id).ok_or(LinkError::NotFound)?;
        let wanted = stream.promiscuity | on;
        self.set_promiscuity(id, wanted)
    }

    /// Turns them off; all of them must be set.
    pub fn promisc_off(&mut self, id: StreamId, off: Promiscuity) -> Result<(), LinkError> {
        let stream = self.stream(id).ok_or(LinkError::NotFound)?;
        let wanted = stream.promiscuity.without(off);
        self.set_promiscuity(id, wanted.map_err(LinkError::NotPromiscuous)?)
    }

    /// What a stream has turned on.
    pub fn promiscuity(&self, id: StreamId) -> Option<Promiscuity> {
        Some(self.stream(id)?.promiscuity)
    }

    /// On failure the old flags remain.
    fn set_promiscuity(&mut self, id: StreamId, wanted: Promiscuity) -> Result<(), LinkError> {
        let stream = self.streams.get_mut(id.index, id.generation);
        let stream = stream.ok_or(LinkError::NotFound)?;
        let (link, old) = (
            stream.link,
            core::mem::replace(&mut stream.promiscuity, wanted),
        );
        let over = self.link(link).ok_or(LinkError::NotFound)?.over;
        let told = self.sync_listening(over);
        if told.is_err()
            && let Some(stream) = self.streams.get_mut(id.index, id.generation)
        {
            stream.promiscuity = old;
        }
        self.publish(over);
        told
    }
}
