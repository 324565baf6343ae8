//! Any datagram is refused or read as commands; a command's object means the same when it is
//! written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netlink::{
    Candidate, DiagRequest, Emit, Messages, Object, Request, UnixRequest, UnixSocket, Writer,
};

fn written(object: &Object, to: &mut Writer) {
    let written = match object {
        Object::Link(link) => link.answer(0, 0, to),
        Object::Address(address) => address.answer(0, 0, to),
        Object::Route(route) => route.answer(0, 0, to),
        Object::Neighbour(neighbour) => neighbour.answer(0, 0, to),
        Object::Rule(rule) => rule.answer(0, 0, to),
    };
    written.expect("an object is at most twice as long as what it was read from");
}

fuzz_target!(|bytes: &[u8]| {
    for message in Messages::new(bytes) {
        if let Ok(request) = UnixRequest::parse(&message) {
            let socket = UnixSocket {
                name: Some(message.body()),
                ..UnixSocket::default()
            };
            let picked = request.pick(&socket);
            // A name longer than an attribute can be does not fit.
            let mut buffer = vec![0; 64 + bytes.len()];
            let _ = picked.answer(0, 0, &mut Writer::new(&mut buffer));
        }
        if let Ok(request) = DiagRequest::parse(&message)
            && let Some(filter) = request.filter
        {
            let id = request.id;
            filter.selects(&Candidate {
                id,
                is_port_automatic: false,
                mark: 0,
            });
        }
        let Ok(request) = Request::parse(&message) else {
            continue;
        };
        let mut buffer = vec![0; 1024 + 2 * bytes.len()];
        written(&request.object, &mut Writer::new(&mut buffer));
        let message = Messages::new(&buffer).next().expect("a message");
        let again = Request::parse(&message).map(|again| again.object);
        assert_eq!(again, Ok(request.object));
    }
});
