//! One line of a stack.

/// A function, or something that stands in a stack beside functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// The address in it; 0 for what is no function.
    pub address: u64,
    /// The file that it belongs to.
    pub file: String,
}

/// A line of a stack: address, name, file.
pub type Line<'a> = (u64, &'a str, &'a str);

impl Frame {
    /// What to print of it.
    pub fn line(&self) -> Line<'_> {
        (self.address, &self.name, &self.file)
    }

    /// Something that is no function.
    pub fn mark(name: &str) -> Self {
        Self {
            name: name.into(),
            address: 0,
            file: String::new(),
        }
    }
}
