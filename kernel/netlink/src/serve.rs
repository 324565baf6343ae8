//! Who does a request: by what it is about and what is to be done.

use cred::Capability;
use netlink::{DiagRequest, Message, Object, Request, UnixRequest, Verb};
use sync::Error;

use super::answer::Refusal;
use super::diag;
use super::dump::{Dumping, Query};
use super::objects::{address, link, neighbour, route, rule};
use super::protocol::Protocol;
use super::requester::Requester;

/// How far a request is done.
pub(super) enum Outcome {
    /// All of it.
    Done,
    /// The answer is to be read.
    Dump(Dumping),
}

/// Does what one message, which is `requester`'s, asks for.
pub(super) fn request(
    requester: &Requester<'_>,
    message: &Message<'_>,
) -> Result<Outcome, Refusal> {
    match requester.endpoint.protocol {
        Protocol::Route => configure(requester, message),
        Protocol::SocketDiag => inspect(requester, message),
    }
}

fn inspect(requester: &Requester<'_>, message: &Message<'_>) -> Done {
    if UnixRequest::is_meant(message) {
        let request = UnixRequest::parse(message)?;
        return match request.is_dump {
            true => Ok(dump(
                requester,
                Query::Unix(diag::unix::DumpFilter::of(&request)),
            )),
            false => done(diag::unix::get(requester, &request)),
        };
    }
    let request = DiagRequest::parse(message)?;
    let wanted = diag::inet::DumpFilter::of(&request)?;
    match (request.is_destroy, request.is_dump) {
        (true, _) => Err(Error::Unsupported.into()),
        (false, true) => Ok(dump(requester, Query::Inet(wanted))),
        (false, false) => done(diag::inet::get(requester, &request, &wanted)),
    }
}

fn configure(requester: &Requester<'_>, message: &Message<'_>) -> Result<Outcome, Refusal> {
    let request = Request::parse(message)?;
    let is_change = !matches!(request.verb, Verb::Get | Verb::Dump);
    if is_change {
        cred::credentials().get().require(Capability::NetAdmin)?;
    }
    match request.unread {
        // What is not understood would be left undone.
        Some(error) if is_change || requester.is_strict() => {
            let mut refusal = Refusal::from(error);
            refusal.text = Some("Unknown attribute");
            return Err(refusal);
        }
        _ => {}
    }
    let done = match request.object {
        Object::Link(object) => about_link(requester, request.verb, &object),
        Object::Address(object) => about_address(requester, request.verb, &object),
        Object::Route(object) => about_route(requester, request.verb, &object),
        Object::Neighbour(object) => about_neighbour(requester, request.verb, &object),
        Object::Rule(object) => about_rule(requester, request.verb, &object),
    };
    if is_change {
        net::look_for_changes();
    }
    done
}

type Done = Result<Outcome, Refusal>;

fn dump(requester: &Requester<'_>, query: Query) -> Outcome {
    Outcome::Dump(Dumping::new(requester, query))
}

fn done(result: Result<(), Refusal>) -> Done {
    result.map(|()| Outcome::Done)
}

fn about_link(requester: &Requester<'_>, verb: Verb, object: &netlink::Link<'_>) -> Done {
    match verb {
        Verb::Dump => Ok(dump(requester, Query::Links(link::DumpFilter::of(object)))),
        Verb::Get => done(link::get(requester, object)),
        Verb::New | Verb::Set => done(link::change(requester, object)),
        Verb::Delete => Err(Error::Unsupported.into()),
    }
}

fn about_address(requester: &Requester<'_>, verb: Verb, object: &netlink::Address<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = address::DumpFilter::of(object, requester.is_strict());
            Ok(dump(requester, Query::Addresses(wanted)))
        }
        Verb::New => done(address::add(requester, object)),
        Verb::Delete => done(address::remove(requester, object)),
        Verb::Get | Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_route(requester: &Requester<'_>, verb: Verb, object: &netlink::Route<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = route::DumpFilter::of(object, requester.is_strict());
            Ok(dump(requester, Query::Routes(wanted)))
        }
        Verb::Get => done(route::get(requester, object)),
        Verb::New => done(route::add(requester, object)),
        Verb::Delete => done(route::remove(requester, object)),
        Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_neighbour(requester: &Requester<'_>, verb: Verb, object: &netlink::Neighbour<'_>) -> Done {
    match verb {
        Verb::Dump => {
            let wanted = neighbour::DumpFilter::of(object, requester.is_strict());
            Ok(dump(requester, Query::Neighbours(wanted)))
        }
        Verb::Get => done(neighbour::get(requester, object)),
        Verb::New => done(neighbour::add(requester, object)),
        Verb::Delete => done(neighbour::remove(requester, object)),
        Verb::Set => Err(Error::Unsupported.into()),
    }
}

fn about_rule(requester: &Requester<'_>, verb: Verb, object: &netlink::Rule<'_>) -> Done {
    match verb {
        Verb::Dump => Ok(dump(requester, Query::Rules(rule::DumpFilter::of(object)))),
        _ => Err(Refusal::new(Error::Unsupported, "The rules are fixed")),
    }
}
