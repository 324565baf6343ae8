//! Whatever a server answers, the client neither panics nor keeps a tag, and takes no
//! more than it asked for.
#![no_main]

use fuse::{Call, Caller, Client, ROOT, Reply, Request, What};
use libfuzzer_sys::fuzz_target;

const fn read(what: What) -> Request<'static> {
    Request::Read { what, handle: 1, offset: 0, count: 512 }
}

const REQUESTS: [Request<'static>; 10] = [
    Request::Init,
    Request::Lookup { name: b"a" },
    Request::Create { name: b"a", flags: 2, mode: 0 },
    Request::Open { what: What::File, flags: 0 },
    read(What::File),
    read(What::Directory),
    Request::Write { handle: 1, offset: 0, data: b"data" },
    Request::Getattr,
    Request::Statfs,
    Request::Readlink,
];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, answer)) = input.split_first() else { return };
    let request = REQUESTS[usize::from(choice) % REQUESTS.len()];
    let mut client = Client::new(1);
    let call = Call { node: ROOT, caller: Caller::default(), request };
    let (tag, _) = client.begin(&call, &mut [0; 4096]).expect("a free tag");
    match client.finish(tag, answer) {
        Ok(Reply::Data(data)) => assert!(data.len() <= 4096),
        Ok(Reply::Directory(list)) => assert!(list.iter().count() <= 512 / 24),
        Ok(Reply::Written(count)) => assert!(count <= 4),
        Ok(Reply::Init { write_bytes_max }) => assert!(write_bytes_max >= 4096),
        _ => {}
    }
    assert_eq!(client.in_flight(), 0);
});
