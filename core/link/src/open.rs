//! Who may use a link: streams in modes passive, active and exclusive.
//!
//! The problem: a stack and a virtual machine's device must not both own a link, while
//! somebody who only watches disturbs neither, whichever came first.
//!
//! The idea: a link has one state, [`Hold`]: free, held by so many active streams, or
//! held by one exclusively. A stream starts uninitialised and decides once:
//!
//! ```text
//!                  ┌─ passive ──▶ Passive     never blocks, is never blocked
//! Uninitialised ───┼─ bind, … ──▶ Active      counts in the link's state
//!                  └─ exclusive ▶ Exclusive   only if nobody is active
//! ```
//!
//! All changes go through `&mut` of both under the link layer's lock, so between two of
//! them nobody sees a stream that is half one and half the other. Closing undoes
//! whatever the stream is, even if it never bound.

use alloc::vec::Vec;

/// What a stream binds to: an EtherType, or 0 for none of them (raw).
pub type Sap = u16;

/// A stream may bind this many; more are refused.
pub const SAPS_MAX: usize = 16;

/// What a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Nothing yet.
    #[default]
    Uninitialised,
    /// It watches.
    Passive,
    /// It uses the link beside others.
    Active,
    /// It has the link to itself.
    Exclusive,
}

/// Why a stream may not do what it asked for. DLPI's names are in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The stream has decided otherwise already (`DL_OUTSTATE`).
    OutOfState {
        /// What it is.
        mode: Mode,
    },
    /// Somebody else holds the link, or the protocol on it (`DL_SYSERR`, `EBUSY`).
    Busy,
    /// The stream has not bound that (`DL_OUTSTATE`).
    NotBound,
    /// The stream has bound [`SAPS_MAX`].
    TooMany,
}

/// Who holds a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hold {
    /// Nobody.
    #[default]
    Free,
    /// So many active streams, at least one.
    Active(u32),
    /// One stream.
    Exclusive,
}

/// The part of a stream that competes for the link.
#[derive(Debug, Default)]
pub struct Claim {
    mode: Mode,
    saps: Vec<Sap>,
}

impl Claim {
    /// What the stream is.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What it has bound.
    pub fn saps(&self) -> &[Sap] {
        &self.saps
    }

    /// Only watches from now on.
    pub fn become_passive(&mut self) -> Result<(), OpenError> {
        match self.mode {
            Mode::Uninitialised | Mode::Passive => {
                self.mode = Mode::Passive;
                Ok(())
            }
            mode => Err(OpenError::OutOfState { mode }),
        }
    }

    /// Has the link to itself from now on.
    pub fn become_exclusive(&mut self, hold: &mut Hold) -> Result<(), OpenError> {
        if self.mode != Mode::Uninitialised {
            return Err(OpenError::OutOfState { mode: self.mode });
        }
        if *hold != Hold::Free {
            return Err(OpenError::Busy);
        }
        *hold = Hold::Exclusive;
        self.mode = Mode::Exclusive;
        Ok(())
    }

    /// Before anything that uses the link: a stream that has not decided becomes active.
    pub fn use_link(&mut self, hold: &mut Hold) -> Result<(), OpenError> {
        if self.mode != Mode::Uninitialised {
            return Ok(());
        }
        let active = match *hold {
            Hold::Free => 1,
            Hold::Active(streams) => streams.saturating_add(1),
            Hold::Exclusive => return Err(OpenError::Busy),
        };
        *hold = Hold::Active(active);
        self.mode = Mode::Active;
        Ok(())
    }

    /// Takes frames of a protocol. `others` are the protocols that other streams have
    /// bound actively on this link. A stream may ask twice.
    pub fn bind(
        &mut self,
        hold: &mut Hold,
        sap: Sap,
        others: impl IntoIterator<Item = Sap>,
    ) -> Result<(), OpenError> {
        if self.saps.contains(&sap) {
            return Ok(());
        }
        if self.saps.len() == SAPS_MAX {
            return Err(OpenError::TooMany);
        }
        let competes = self.mode != Mode::Passive && sap != 0;
        if competes && others.into_iter().any(|other| other == sap) {
            return Err(OpenError::Busy);
        }
        self.use_link(hold)?;
        self.saps.push(sap);
        Ok(())
    }

    /// Takes them no longer. The stream stays active until it closes.
    pub fn unbind(&mut self, sap: Sap) -> Result<(), OpenError> {
        let at = self.saps.iter().position(|bound| *bound == sap);
        self.saps.swap_remove(at.ok_or(OpenError::NotBound)?);
        Ok(())
    }

    /// Gives up what the stream has of the link.
    pub fn close(&mut self, hold: &mut Hold) {
        match (self.mode, *hold) {
            (Mode::Exclusive, _) => *hold = Hold::Free,
            (Mode::Active, Hold::Active(streams)) if streams > 1 => {
                *hold = Hold::Active(streams - 1);
            }
            (Mode::Active, _) => *hold = Hold::Free,
            (Mode::Passive | Mode::Uninitialised, _) => {}
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: Sap = 0x0800;
    const NONE: [Sap; 0] = [];

    #[test]
    fn a_link_with_ip_on_it_cannot_be_taken_exclusively_and_the_other_way_round() {
        let (mut hold, mut ip, mut vnd) = (Hold::Free, Claim::default(), Claim::default());
        ip.bind(&mut hold, IP, NONE).expect("free");
        assert_eq!(vnd.become_exclusive(&mut hold), Err(OpenError::Busy));
        ip.close(&mut hold);
        vnd.become_exclusive(&mut hold).expect("free again");
        assert_eq!(ip.bind(&mut hold, IP, NONE), Err(OpenError::Busy));
        vnd.close(&mut hold);
        assert_eq!(ip.bind(&mut hold, IP, NONE), Ok(()));
    }

    #[test]
    fn a_passive_stream_watches_throughout_both() {
        let (mut hold, mut snoop, mut vnd) = (Hold::Free, Claim::default(), Claim::default());
        snoop.become_passive().expect("fresh");
        snoop.bind(&mut hold, IP, [IP]).expect("passive");
        assert_eq!(hold, Hold::Free);
        vnd.become_exclusive(&mut hold).expect("nobody is active");
        let mut late = Claim::default();
        late.become_passive().expect("fresh");
        assert_eq!(late.bind(&mut hold, 0, NONE), Ok(()));
        assert_eq!(hold, Hold::Exclusive);
    }

    #[test]
    fn exclusivity_ends_with_a_stream_that_never_bound() {
        let (mut hold, mut vnd, mut ip) = (Hold::Free, Claim::default(), Claim::default());
        vnd.become_exclusive(&mut hold).expect("free");
        vnd.close(&mut hold);
        assert_eq!(ip.bind(&mut hold, IP, NONE), Ok(()));
    }

    #[test]
    fn a_stream_decides_once() {
        let (mut hold, mut stream) = (Hold::Free, Claim::default());
        stream.bind(&mut hold, IP, NONE).expect("free");
        let decided = OpenError::OutOfState { mode: Mode::Active };
        assert_eq!(stream.become_passive(), Err(decided));
        assert_eq!(stream.become_exclusive(&mut hold), Err(decided));
        let mut passive = Claim::default();
        passive.become_passive().expect("fresh");
        let decided = OpenError::OutOfState {
            mode: Mode::Passive,
        };
        assert_eq!(passive.become_exclusive(&mut hold), Err(decided));
    }

    #[test]
    fn a_second_active_bind_of_one_protocol_is_busy() {
        let (mut hold, mut first, mut second) = (Hold::Free, Claim::default(), Claim::default());
        first.bind(&mut hold, IP, NONE).expect("free");
        assert_eq!(second.bind(&mut hold, IP, [IP]), Err(OpenError::Busy));
        assert_eq!(second.mode(), Mode::Uninitialised);
        assert_eq!(second.bind(&mut hold, 0x0806, [IP]), Ok(()));
        assert_eq!(hold, Hold::Active(2));
    }

    #[test]
    fn an_exclusive_stream_binds_and_stays_exclusive() {
        let (mut hold, mut vnd) = (Hold::Free, Claim::default());
        vnd.become_exclusive(&mut hold).expect("free");
        vnd.bind(&mut hold, IP, NONE).expect("its own");
        assert_eq!((vnd.mode(), hold), (Mode::Exclusive, Hold::Exclusive));
        assert_eq!(vnd.unbind(0x86dd), Err(OpenError::NotBound));
        assert_eq!(vnd.unbind(IP), Ok(()));
    }

    #[test]
    fn active_streams_are_counted_down_to_free() {
        let (mut hold, mut first, mut second) = (Hold::Free, Claim::default(), Claim::default());
        first.use_link(&mut hold).expect("free");
        second.use_link(&mut hold).expect("not exclusive");
        first.close(&mut hold);
        assert_eq!(hold, Hold::Active(1));
        second.close(&mut hold);
        assert_eq!(hold, Hold::Free);
    }

    #[test]
    fn bindings_are_bounded() {
        let (mut hold, mut stream) = (Hold::Free, Claim::default());
        for sap in 1..=SAPS_MAX as Sap {
            stream.bind(&mut hold, sap, NONE).expect("room");
        }
        assert_eq!(stream.bind(&mut hold, 999, NONE), Err(OpenError::TooMany));
        assert_eq!(stream.bind(&mut hold, 1, NONE), Ok(()));
    }
}
