//! A packet's headers, from the outermost to the innermost that is known.

use crate::layer::Layer;

/// What a packet's bytes say.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Dissection {
    /// Who sent it, in the words of the innermost header that says so.
    pub source: String,
    /// To whom.
    pub destination: String,
    /// Its headers, the outermost first.
    pub layers: Vec<Layer>,
}

impl Dissection {
    /// Adds a header.
    pub(crate) fn push(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    /// A header inside says better who speaks to whom.
    pub(crate) fn between(&mut self, source: impl ToString, destination: impl ToString) {
        self.source = source.to_string();
        self.destination = destination.to_string();
    }
}
