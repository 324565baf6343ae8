//! Which frames a promiscuous stream sees.
//!
//! Levels add up. `RX_ONLY` is no level but an option: alone it changes nothing, with a
//! level it keeps the link's own transmissions away, which otherwise look to IPv6 like a
//! neighbour with our address. Only `PHYS` ever makes a card promiscuous.

bitflags::bitflags! {
    /// Levels and options (the bits are DLPI's `DL_PROMISC_*` levels less one).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Promiscuity: u8 {
        /// Everything on the wire.
        const PHYS = 1 << 0;
        /// Every protocol of this link.
        const SAP = 1 << 1;
        /// Every multicast.
        const MULTI = 1 << 2;
        /// Nothing that this link sends.
        const RX_ONLY = 1 << 3;
        /// Checksums complete in copies of what local clients send.
        const FIXUPS = 1 << 4;
    }
}

/// That level is not set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotSet;

/// A frame as one link sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameClass {
    /// The link itself sends it.
    pub is_own: bool,
    /// For several stations, broadcast included.
    pub is_multicast: bool,
    /// The link would receive it anyway: its address, or a multicast that it takes part in.
    pub is_for_link: bool,
}

impl Promiscuity {
    const LEVELS: Self = Self::PHYS.union(Self::SAP).union(Self::MULTI);

    /// Without the bits of `off`, all of which must be set.
    pub fn without(self, off: Self) -> Result<Self, NotSet> {
        if !self.contains(off) || off.is_empty() {
            return Err(NotSet);
        }
        Ok(self - off)
    }

    /// Whether any level is set.
    pub fn is_promiscuous(self) -> bool {
        self.intersects(Self::LEVELS)
    }

    /// Whether unicast frames of the port, or of the link, may be shown.
    pub fn sees_unicast(self) -> bool {
        self.intersects(Self::PHYS | Self::SAP)
    }

    /// Whether a frame is shown. With `is_filtered` (the link property
    /// `promisc-filtered`), neighbours' unicast frames are not.
    pub fn sees(self, frame: FrameClass, is_filtered: bool) -> bool {
        if frame.is_own && self.contains(Self::RX_ONLY) {
            return false;
        }
        let concerns_link = frame.is_own || frame.is_for_link || frame.is_multicast;
        let everything = self.contains(Self::PHYS) && (concerns_link || !is_filtered);
        let ours = self.contains(Self::SAP) && (frame.is_own || frame.is_for_link);
        let multicasts = self.contains(Self::MULTI) && frame.is_multicast;
        everything || ours || multicasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: FrameClass = FrameClass {
        is_own: true,
        is_multicast: false,
        is_for_link: false,
    };
    const NEIGHBOURS: FrameClass = FrameClass {
        is_own: false,
        ..OWN
    };
    const OURS: FrameClass = FrameClass {
        is_for_link: true,
        ..NEIGHBOURS
    };
    const GROUP: FrameClass = FrameClass {
        is_multicast: true,
        ..NEIGHBOURS
    };

    #[test]
    fn a_physical_stream_sees_own_frames_unless_it_is_receive_only() {
        assert!(Promiscuity::PHYS.sees(OWN, false));
        let receive_only = Promiscuity::PHYS | Promiscuity::RX_ONLY;
        assert!(!receive_only.sees(OWN, false));
        assert!(receive_only.sees(NEIGHBOURS, false) && receive_only.sees(OURS, false));
    }

    #[test]
    fn receive_only_alone_shows_nothing() {
        for frame in [OWN, NEIGHBOURS, OURS, GROUP] {
            assert!(!Promiscuity::RX_ONLY.sees(frame, false));
        }
        assert!(!(Promiscuity::RX_ONLY | Promiscuity::FIXUPS).is_promiscuous());
    }

    #[test]
    fn multi_shows_multicasts_only_and_sap_what_concerns_the_link() {
        assert!(Promiscuity::MULTI.sees(GROUP, true));
        assert!(!Promiscuity::MULTI.sees(OURS, true) && !Promiscuity::MULTI.sees(OWN, true));
        assert!(Promiscuity::SAP.sees(OURS, true) && Promiscuity::SAP.sees(OWN, true));
        assert!(!Promiscuity::SAP.sees(NEIGHBOURS, false) && !Promiscuity::SAP.sees(GROUP, false));
    }

    #[test]
    fn a_filtered_link_does_not_show_neighbours_unicast() {
        assert!(!Promiscuity::PHYS.sees(NEIGHBOURS, true));
        assert!(Promiscuity::PHYS.sees(NEIGHBOURS, false));
        assert!(Promiscuity::PHYS.sees(OURS, true) && Promiscuity::PHYS.sees(GROUP, true));
    }

    #[test]
    fn turning_off_what_is_not_set_is_an_error() {
        let set = Promiscuity::PHYS | Promiscuity::RX_ONLY;
        assert_eq!(set.without(Promiscuity::RX_ONLY), Ok(Promiscuity::PHYS));
        assert_eq!(Promiscuity::PHYS.without(Promiscuity::RX_ONLY), Err(NotSet));
    }
}
