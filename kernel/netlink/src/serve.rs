//! Who does a request: by what it is about and what is to be done.

use cred::Capability;
use netlink::{DiagRequest, Message, Object, Request, UnixRequest, Verb};
use sync::Error;

use super::answer::Refusal;
use super::asked::Asked;
use super::diag;
use super::dump::{Dumping, Query};
use super::objects::{address, link, neighbour, route, rule};
use super::protocol::Protocol;

/// How far a request is done.
pub(super) enum Outcome {
    /// All of it.
    Done,
    /// The answer is to be read.
    Dump(Dumping),
}

/// Does what one message, which `asked` is, asks for.
pub(super) fn request(asked: &Asked<'_>, message: &Message<'_>) -> Result<Outcome, Refusal> {
    match asked.endpoint.protocol {
        Protocol::Route => configure(asked, message),
        Protocol::SocketDiag => inspect(asked, message),
    }
}

fn inspect(asked: &Asked<'_>, message: &Message<'_>) -> Done {
    if UnixRequest::is_meant(message) {
        let request = UnixRequest::parse(message)?;
        return match request.is_dump {
            true => Ok(dump(
                asked,
                Query::Unix(diag::unix::DumpFilter::of(&request)),
            )),
            false => done(diag::unix::get(asked, &request)),
        };
    }
    let request = DiagRequest::parse(message)?;
    let wanted = diag::inet::DumpFilter::of(&request)?;
    match (request.is_destroy, request.is_dump) {
        (true, _) => Err(Error::Unsupported.into()),
        (false, true) => Ok(dump(asked, Query::Inet(wanted))),
        (false, false) => done(diag::inet::get(asked, &request, &wanted)),
    }
}

fn configure(asked: &Asked<'_>, message: &Message<'_>) -> Result<Outcome, Refusal> {
    let request = Request::parse(message)?;
    let is_change = !matches!(request.verb, Verb::Get | Verb::Dump);
    if is_change {
        cred::credentials().get().require(Capability::NetAdmin)?;
    }
    match request.unread {
        // What is not understood would be left undone.
        Some(error) if is_change || asked.is_strict() => {
            let mut refusal = Refusal::from(error);
            refusal.text = Some("Unknown attribute");
            return Err(refusal);
        }
        _ => {}
    }
    let done = match request.object {
        Object::Link(object) => about_link(asked, request.verb, &object),
        Object::Address(object) => about_address(asked, request.verb, &object),
        Object::Route(object) => about_route(asked, request.verb, &object),
        Object::Neighbour(object) => about_neighbour(asked, request.verb, &object),
        Object::Rule(object) => about_rule(asked, request.verb, &object),
    };
    if is_change {
        net::look_for_changes();
    }
    done
}

type Done = Result<Outcome, Refusal>;

fn dump(asked: &Asked<'_>, query: Query) -> Outcome {
    Outcome::Dump(Dumping::new(asked, query))
}

fn done(result: Result<(), Refusal>) -> Done {
    result.map(|()| Outcome::Done)
}

fn about_link(asked: &Asked<'_>, verb: Verb, object: &netlink::Link<'_>) -> Done {
    match verb {
        Verb::Dump => Ok(dump(asked, Query::Links(link::DumpFilter::of(object)))),
        Verb::Get => done(link::get(asked, object)),
        Verb::New | Verb::Set => done(link::change(asked, object)),
        Verb::Delete => Err(Error::Unsupported.into()),
    }
}

fn about_address(asked: &Asked<'_>, verb: Verb, object: &netlink::Address<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = address::DumpFilter::of(object, asked.is_strict());
            Ok(dump(asked, Query::Addresses(wanted)))
        }
        Verb::New => done(address::add(asked, object)),
        Verb::Delete => done(address::remove(asked, object)),
        Verb::Get | Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_route(asked: &Asked<'_>, verb: Verb, object: &netlink::Route<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = route::DumpFilter::of(object, asked.is_strict());
            Ok(dump(asked, Query::Routes(wanted)))
        }
        Verb::Get => done(route::get(asked, object)),
        Verb::New => done(route::add(asked, object)),
        Verb::Delete => done(route::remove(asked, object)),
        Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_neighbour(asked: &Asked<'_>, verb: Verb, object: &netlink::Neighbour<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = neighbour::DumpFilter::of(object, asked.is_strict());
            Ok(dump(asked, Query::Neighbours(wanted)))
        }
        Verb::Get => done(neighbour::get(asked, object)),
        Verb::New => done(neighbour::add(asked, object)),
        Verb::Delete => done(neighbour::remove(asked, object)),
        Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_rule(asked: &Asked<'_>, verb: Verb, object: &netlink::Rule<'_>) -> Done {
    match verb {
        Verb::Dump => Ok(dump(asked, Query::Rules(rule::DumpFilter::of(object)))),
        _ => Err(Refusal::new(Error::Unsupported, "The rules are fixed")),
    }
}
