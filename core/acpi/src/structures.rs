//! The structures in a table: each starts with a byte for its kind and one for its length.

/// The structures of `table` from the byte `at` on, with their kinds. Ends where the
/// length leads out of the table or is too short for itself.
pub fn structures(table: &[u8], at: usize) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = table.get(at..).unwrap_or(&[]);
    core::iter::from_fn(move || {
        let [kind, bytes, ..] = *rest else {
            return None;
        };
        let (structure, behind) = rest.split_at_checked(usize::from(bytes))?;
        rest = behind;
        (structure.len() >= 2).then_some((kind, structure))
    })
}
