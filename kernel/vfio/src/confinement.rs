//! Whether devices of programs are confined: by the machine's IOMMU, or, where there is none and the
//! administrator allows that, not at all.

use mach::sync::Once;

/// Said once at boot: it is the machine's.
static IS_ABSENT: Once<bool> = Once::new();

/// Says whether devices may be offered on a machine without an IOMMU.
pub fn decide(allows_unconfined: bool) {
    IS_ABSENT.call_once(|| allows_unconfined && !iommu::is_there());
}

/// Whether devices are offered that no IOMMU is before: all are then.
pub fn is_absent() -> bool {
    IS_ABSENT.get() == Some(&true)
}
