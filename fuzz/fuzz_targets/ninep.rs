//! Whatever a server answers, the client neither panics nor keeps a tag, and takes no
//! more than it asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ninep::{Client, Fid, Reply, Request};

const MSIZE: usize = 4096;
const FID: Fid = Fid(1);

const REQUESTS: [Request<'static>; 9] = [
    Request::Version { msize: MSIZE as u32 },
    Request::Walk { fid: FID, new: Fid(2), names: &[b"a", b"b"] },
    Request::Lopen { fid: FID, flags: 0 },
    Request::Read { fid: FID, offset: 0, count: 512 },
    Request::Write { fid: FID, offset: 0, data: b"data" },
    Request::Readdir { fid: FID, offset: 0, count: 512 },
    Request::Getattr { fid: FID },
    Request::Statfs { fid: FID },
    Request::Readlink { fid: FID },
];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, answer)) = input.split_first() else { return };
    let request = REQUESTS[usize::from(choice) % REQUESTS.len()];
    let mut client = Client::new(1, MSIZE);
    let (tag, _) = client.begin(&request, &mut [0; MSIZE]).expect("a free tag");
    match client.finish(tag, answer) {
        Ok(Reply::Data(data)) => assert!(data.len() <= 512),
        Ok(Reply::Directory(list)) => assert!(list.iter().count() <= 512 / 24),
        Ok(Reply::Walk(qids)) => assert!(qids.iter().count() <= 2),
        Ok(Reply::Written(count)) => assert!(count <= 4),
        _ => {}
    }
    assert_eq!(client.in_flight(), 0);
});
