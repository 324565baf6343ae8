//! A header, as people read it.

/// One header of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Its protocol, in capitals.
    pub name: &'static str,
    /// What the heading of its fields says.
    pub title: &'static str,
    /// All of it in a line.
    pub summary: String,
    /// Each of its fields.
    pub fields: Vec<(&'static str, String)>,
}

impl Layer {
    /// A header of which nothing is known yet but what it is.
    pub fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            summary: String::new(),
            fields: Vec::new(),
        }
    }

    /// Bytes that are too few for the header, or say what it cannot.
    pub fn malformed(name: &'static str, title: &'static str, bytes: usize) -> Self {
        Self {
            summary: format!("malformed, {bytes} bytes"),
            ..Self::new(name, title)
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &'static str, value: impl ToString) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }

    /// Says all of it in a line.
    #[must_use]
    pub fn summed_up(mut self, summary: String) -> Self {
        self.summary = summary;
        self
    }
}
