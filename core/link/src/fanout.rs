//! How many CPUs share the frames of one link.
//!
//! A fast link has more frames than one CPU can take through the stack; a slow one gains
//! nothing from several and loses the cache. The numbers are illumos'.

/// Soft rings of one link at most, however many CPUs are named.
pub const SOFT_RINGS_MAX: u32 = 16;
/// Soft rings of a link faster than [`FAST_MBPS`].
const SOFT_RINGS_FAST: u32 = 8;
const FAST_MBPS: u64 = 1000;

/// What the number depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Of the link.
    pub speed_mbps: u64,
    /// The bandwidth limit, if any.
    pub maxbw_bps: Option<u64>,
    /// One CPU's clock.
    pub cpu_mhz: u64,
    /// CPUs of the machine.
    pub cpus: u32,
    /// CPUs named by the administrator; zero for none.
    pub named_cpus: u32,
    /// Hardware rings that carry the link's frames; they share the soft rings.
    pub hardware_rings: u32,
}

/// Soft rings of each hardware ring; zero means that the ring's own CPU does all.
pub fn soft_rings(facts: &Facts) -> u32 {
    if facts.named_cpus > 0 {
        return facts.named_cpus.min(SOFT_RINGS_MAX);
    }
    let limit_mbps = facts.maxbw_bps.map(|bps| bps / 1_000_000);
    let all = match limit_mbps {
        Some(mbps) if mbps >= FAST_MBPS => mbps / facts.cpu_mhz.max(1),
        Some(_) => 0,
        None if facts.speed_mbps > FAST_MBPS => u64::from(SOFT_RINGS_FAST),
        None => 0,
    };
    let each = all / u64::from(facts.hardware_rings.max(1));
    let each = if each == 1 && facts.hardware_rings > 1 {
        0
    } else {
        each
    };
    let most = facts.cpus.min(SOFT_RINGS_MAX);
    u32::try_from(each).map_or(most, |each| each.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Facts = Facts {
        speed_mbps: 10_000,
        maxbw_bps: None,
        cpu_mhz: 2000,
        cpus: 32,
        named_cpus: 0,
        hardware_rings: 1,
    };

    #[test]
    fn a_fast_link_has_eight_soft_rings_and_a_slow_one_none() {
        assert_eq!(soft_rings(&FAST), 8);
        let slow = Facts {
            speed_mbps: 1000,
            ..FAST
        };
        assert_eq!(soft_rings(&slow), 0);
    }

    #[test]
    fn a_limited_link_has_as_many_as_its_bandwidth_needs() {
        let limited = |bps| Facts {
            maxbw_bps: Some(bps),
            ..FAST
        };
        assert_eq!(soft_rings(&limited(6_000_000_000)), 3);
        assert_eq!(soft_rings(&limited(999_999_999)), 0);
    }

    #[test]
    fn hardware_rings_share_and_one_left_over_is_none() {
        let shared = |hardware_rings| Facts {
            hardware_rings,
            ..FAST
        };
        assert_eq!(soft_rings(&shared(4)), 2);
        assert_eq!(soft_rings(&shared(8)), 0);
    }

    #[test]
    fn the_machines_cpus_limit_and_named_cpus_decide() {
        assert_eq!(soft_rings(&Facts { cpus: 2, ..FAST }), 2);
        let named = |named_cpus| Facts { named_cpus, ..FAST };
        assert_eq!(soft_rings(&named(3)), 3);
        assert_eq!(soft_rings(&named(200)), SOFT_RINGS_MAX);
    }
}
