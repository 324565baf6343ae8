//! SLIT: how far proximity domains are from each other (ACPI 6.5, 5.2.17).

use crate::bytes::long;

const LOCALITIES: usize = 36;
const MATRIX: usize = 44;
/// The distance of a domain to itself; all others are longer.
pub(crate) const NEAR: u8 = 10;
/// What is taken for the distance to another domain where the firmware says nothing.
pub(crate) const FAR: u8 = 20;

/// The distance between two domains; `None` where the table has none or one that can not
/// be: 10 is a domain's distance to itself, and only that.
pub(crate) fn distance(slit: &[u8], from: u32, to: u32) -> Option<u8> {
    let localities = long(slit, LOCALITIES)?;
    let (from, to) = (u64::from(from), u64::from(to));
    if from >= localities || to >= localities {
        return None;
    }
    let index = from.checked_mul(localities)?.checked_add(to)?;
    let at = usize::try_from(index).ok()?.checked_add(MATRIX)?;
    let distance = *slit.get(at)?;
    let can_be = match from == to {
        true => distance == NEAR,
        false => distance > NEAR,
    };
    can_be.then_some(distance)
}
