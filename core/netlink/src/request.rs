//! Commands of the route family: four objects and rules, each made, deleted and asked for.
//!
//! Types come in fours, from 16 up: new, delete, get, set.

use crate::message::Message;
use crate::{Address, Flags, Flaw, Link, Neighbour, Route, Rule};
use crate::{address, link, neighbour, route, rule};

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Make it or change it, as the message's [`Flags`] say.
    New,
    /// Delete it.
    Delete,
    /// Show it.
    Get,
    /// Show all that the object's values select; an old program's say nothing.
    Dump,
    /// Change it; links only.
    Set,
}

/// What a command is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object<'a> {
    /// A link.
    Link(Link<'a>),
    /// An address of a link.
    Address(Address<'a>),
    /// A route.
    Route(Route<'a>),
    /// A neighbour.
    Neighbour(Neighbour<'a>),
    /// A rule.
    Rule(Rule<'a>),
}

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// What to do,
    pub verb: Verb,
    /// and with what.
    pub object: Object<'a>,
}

const SET_LINK: u16 = link::NEW + 3;

impl<'a> Request<'a> {
    /// Reads a message of the route family.
    pub fn parse(message: &Message<'a>) -> Result<Self, Flaw> {
        let header = message.header();
        let unknown = Flaw::Kind(header.kind);
        let verb = match header.kind % 4 {
            0 => Verb::New,
            1 => Verb::Delete,
            2 if header.flags.any(Flags::DUMP) => Verb::Dump,
            2 => Verb::Get,
            _ if header.kind == SET_LINK => Verb::Set,
            _ => return Err(unknown),
        };
        let object = match header.kind / 4 * 4 {
            link::NEW => {
                whole(message, verb, link::STRUCTURE_BYTES)?;
                Object::Link(Link::parse(message)?)
            }
            address::NEW => {
                whole(message, verb, address::STRUCTURE_BYTES)?;
                Object::Address(Address::parse(message)?)
            }
            route::NEW => {
                whole(message, verb, route::STRUCTURE_BYTES)?;
                Object::Route(Route::parse(message)?)
            }
            neighbour::NEW => {
                whole(message, verb, neighbour::STRUCTURE_BYTES)?;
                Object::Neighbour(Neighbour::parse(message)?)
            }
            rule::NEW => {
                whole(message, verb, rule::STRUCTURE_BYTES)?;
                Object::Rule(Rule::parse(message)?)
            }
            _ => return Err(unknown),
        };
        Ok(Self { verb, object })
    }
}

/// Whether the structure is there. A dump needs only its first byte, the family
/// (`struct rtgenmsg`); the rest is then zero.
fn whole(message: &Message, verb: Verb, structure_bytes: usize) -> Result<(), Flaw> {
    let needs = if verb == Verb::Dump {
        1
    } else {
        structure_bytes
    };
    let has = message.body().len();
    if has < needs {
        return Err(Flaw::Truncated { has, needs });
    }
    Ok(())
}
