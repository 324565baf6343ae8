//! What all objects of the route family have in common: a structure, then attributes.

use crate::ParseError;
use crate::attribute::Attribute;

/// An object that messages start with a structure of, then attributes.
pub(crate) trait Parse<'a>: Sized {
    /// Bytes of the structure.
    const STRUCTURE_BYTES: usize;

    /// What the structure says; bytes that are not there are zero.
    fn start(structure: &[u8]) -> Self;

    /// Takes an attribute, and says whether it is one of those that are known.
    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError>;
}
