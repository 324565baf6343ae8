//! Options at a block's end: `code[2] length[2] value`, padded; code 0 ends them.

use crate::bytes::Fields;

/// Ends the options.
const END: u16 = 0;

impl Fields<'_> {
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        // A longer text is cut: it is for people.
        let len = value.len().min(usize::from(u16::MAX));
        self.u16(code).u16(len as u16).bytes(&value[..len]).pad()
    }

    pub(crate) fn optional_text(&mut self, code: u16, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.option(code, text.as_bytes()),
            None => self,
        }
    }

    pub(crate) fn end_of_options(&mut self) -> &mut Self {
        self.option(END, &[])
    }
}
