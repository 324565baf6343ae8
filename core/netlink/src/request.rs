//! Commands of the route family: four objects and rules, each made, deleted and asked for.
//!
//! Types come in fours, from 16 up: new, delete, get, set.

use crate::message::Message;
use crate::parse::Parse;
use crate::{Address, Flags, Link, Neighbour, ParseError, Route, Rule};
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
    /// The first attribute that was passed over, for it means nothing to us. Who should not
    /// do half of what a program wants refuses the command.
    pub unread: Option<ParseError>,
}

const SET_LINK: u16 = link::NEW + 3;

impl<'a> Request<'a> {
    /// Reads a message of the route family.
    pub fn parse(message: &Message<'a>) -> Result<Self, ParseError> {
        let header = message.header();
        let unknown = ParseError::Kind(header.kind);
        let verb = match header.kind % 4 {
            0 => Verb::New,
            1 => Verb::Delete,
            2 if header.flags.any(Flags::DUMP) => Verb::Dump,
            2 => Verb::Get,
            _ if header.kind == SET_LINK => Verb::Set,
            _ => return Err(unknown),
        };
        let mut unread = None;
        let object = match header.kind / 4 * 4 {
            link::NEW => Object::Link(read(message, verb, &mut unread)?),
            address::NEW => Object::Address(read(message, verb, &mut unread)?),
            route::NEW => Object::Route(read(message, verb, &mut unread)?),
            neighbour::NEW => Object::Neighbour(read(message, verb, &mut unread)?),
            rule::NEW => Object::Rule(read(message, verb, &mut unread)?),
            _ => return Err(unknown),
        };
        Ok(Self {
            verb,
            object,
            unread,
        })
    }
}

/// Reads an object. A dump needs only the structure's first byte, the family (`struct
/// rtgenmsg`).
fn read<'a, T: Parse<'a>>(
    message: &Message<'a>,
    verb: Verb,
    unread: &mut Option<ParseError>,
) -> Result<T, ParseError> {
    let needs = match verb {
        Verb::Dump => 1,
        _ => T::STRUCTURE_BYTES,
    };
    let has = message.body().len();
    if has < needs {
        return Err(ParseError::Truncated { has, needs });
    }
    let mut object = T::start(message.body());
    for attribute in message.attributes(T::STRUCTURE_BYTES) {
        if !object.take(&attribute)? {
            unread.get_or_insert(attribute.error());
        }
    }
    Ok(object)
}
