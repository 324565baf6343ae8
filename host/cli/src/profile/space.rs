//! Which functions lie where in an address space.

use std::rc::Rc;

use super::cfi::Row;
use super::frame::Frame;
use super::module::Module;
use super::unwind::Rows;

/// Which files an address space has executable.
#[derive(Default)]
pub struct Space {
    areas: Vec<Area>,
}

/// A part of a file at a place.
pub struct Area {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub module: Rc<Module>,
}

impl Space {
    /// Adds an area; what it overlaps is gone.
    pub fn add(&mut self, area: Area) {
        self.areas
            .retain(|other| other.end <= area.start || area.end <= other.start);
        self.areas.push(area);
    }

    fn area(&self, address: u64) -> Option<&Area> {
        let holds = |area: &&Area| (area.start..area.end).contains(&address);
        self.areas.iter().find(holds)
    }

    /// The module at `address`, and the address that its file has for that.
    fn place(&self, address: u64) -> Option<(&Module, u64)> {
        let area = self.area(address)?;
        let own = area.module.address_of(address - area.start + area.offset)?;
        Some((&area.module, own))
    }

    /// The function at `address`, as far as it is known.
    pub fn frame(&self, address: u64) -> Frame {
        let Some(area) = self.area(address) else {
            return Frame {
                address,
                ..Frame::mark("[unknown]")
            };
        };
        let name = match self.place(address) {
            Some((module, own)) => module.function(own),
            None => area.module.bracketed(),
        };
        Frame {
            name,
            address,
            file: area.module.name().into(),
        }
    }
}

impl Rows for Space {
    fn row(&self, address: u64) -> Option<Row> {
        let (module, own) = self.place(address)?;
        module.table.row(own)
    }

    fn is_code(&self, address: u64) -> bool {
        self.area(address).is_some()
    }
}
