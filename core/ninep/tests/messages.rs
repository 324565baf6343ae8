//! Messages as other implementations write them, and as hostile ones do.

use ninep::{
    Client, Fid, Kind, Lock, Reply, ReplyError, Request, SetAttributes, SetTime, SubmitError,
};

const MSIZE: usize = 256;

fn sent(request: Request<'_>) -> Vec<u8> {
    let mut bytes = [0; MSIZE];
    let (_, len) = Client::new(1, MSIZE).begin(&request, &mut bytes).unwrap();
    bytes[..len].to_vec()
}

fn message(kind: u8, tag: u16, body: &[u8]) -> Vec<u8> {
    let mut message = (7 + body.len() as u32).to_le_bytes().to_vec();
    message.push(kind);
    message.extend(tag.to_le_bytes());
    message.extend(body);
    message
}

#[test]
fn requests_look_as_the_protocol_says() {
    let version = sent(Request::Version { msize: 8192 });
    assert_eq!(version, b"\x15\0\0\0\x64\xff\xff\0\x20\0\0\x08\x009P2000.L");
    let walk = sent(Request::Walk {
        fid: Fid(1),
        new: Fid(2),
        names: &[b"a", b"bc"],
    });
    assert_eq!(
        walk,
        b"\x18\0\0\0\x6e\0\0\x01\0\0\0\x02\0\0\0\x02\0\x01\0a\x02\0bc"
    );
    let write = sent(Request::Write {
        fid: Fid(3),
        offset: 4,
        data: b"xyz",
    });
    assert_eq!(
        write,
        b"\x1a\0\0\0\x76\0\0\x03\0\0\0\x04\0\0\0\0\0\0\0\x03\0\0\0xyz"
    );
}

#[test]
fn only_what_changes_is_marked_as_valid() {
    let set = SetAttributes {
        size: Some(5),
        modified: Some(SetTime::Now),
        ..SetAttributes::default()
    };
    let message = sent(Request::Setattr { fid: Fid(0), set });
    assert_eq!(message.len(), 7 + 4 + 4 + 12 + 8 + 32);
    assert_eq!(message[11..15], (1u32 << 3 | 1 << 5).to_le_bytes());
}

#[test]
fn each_reply_finds_its_request() {
    let mut client = Client::new(2, MSIZE);
    let mut bytes = [0; MSIZE];
    let read = Request::Read {
        fid: Fid(1),
        offset: 0,
        count: 10,
    };
    let (read, _) = client.begin(&read, &mut bytes).unwrap();
    let (lock, _) = client
        .begin(&Request::Clunk { fid: Fid(2) }, &mut bytes)
        .unwrap();
    let full = client.begin(&Request::Clunk { fid: Fid(3) }, &mut bytes);
    assert_eq!(full, Err(SubmitError::Busy));
    let answer = message(121, 1, b"");
    assert!(matches!(client.finish(lock, &answer), Ok(Reply::Done)));
    let answer = message(117, 0, b"\x02\0\0\0hi");
    assert!(matches!(
        client.finish(read, &answer),
        Ok(Reply::Data(b"hi"))
    ));
    assert!(matches!(
        client.finish(read, &answer),
        Err(ReplyError::NotAsked)
    ));
    assert_eq!(client.in_flight(), 0);
}

fn answered(request: Request<'_>, answer: &[u8]) -> Result<String, ReplyError> {
    let mut client = Client::new(1, MSIZE);
    let (tag, _) = client.begin(&request, &mut [0; MSIZE]).unwrap();
    client.finish(tag, answer).map(|reply| format!("{reply:?}"))
}

#[test]
fn a_server_can_not_bring_more_than_was_asked_for() {
    let read = Request::Read {
        fid: Fid(1),
        offset: 0,
        count: 1,
    };
    let greedy = message(117, 0, b"\x02\0\0\0hi");
    assert_eq!(
        answered(read, &greedy),
        Err(ReplyError::BadBody(Kind::Read))
    );
    let walk = Request::Walk {
        fid: Fid(1),
        new: Fid(2),
        names: &[],
    };
    let greedy = message(111, 0, &[1; 2 + 13]);
    assert_eq!(
        answered(walk, &greedy),
        Err(ReplyError::BadBody(Kind::Walk))
    );
    let written = Request::Write {
        fid: Fid(1),
        offset: 0,
        data: b"x",
    };
    let greedy = message(119, 0, &[2, 0, 0, 0]);
    assert_eq!(
        answered(written, &greedy),
        Err(ReplyError::BadBody(Kind::Write))
    );
}

#[test]
fn replies_that_answer_something_else_are_refused() {
    let clunk = Request::Clunk { fid: Fid(1) };
    assert_eq!(
        answered(clunk, &message(121, 3, b"")),
        Err(ReplyError::WrongTag(3))
    );
    assert_eq!(
        answered(clunk, &message(117, 0, b"")),
        Err(ReplyError::WrongType(117))
    );
    assert_eq!(answered(clunk, b"\x07\0\0"), Err(ReplyError::Truncated));
    assert_eq!(
        answered(clunk, b"\xff\0\0\0\x79\0\0"),
        Err(ReplyError::Truncated)
    );
    assert_eq!(
        answered(clunk, b"\0\0\0\0\x79\0\0"),
        Err(ReplyError::Truncated)
    );
}

#[test]
fn an_error_answers_every_request() {
    let error = message(7, 0, &[2, 0, 0, 0]);
    for request in [
        Request::Clunk { fid: Fid(1) },
        Request::Getattr { fid: Fid(1) },
    ] {
        assert_eq!(answered(request, &error).unwrap(), "Error(2)");
    }
}

#[test]
fn a_directory_is_read_until_its_first_malformed_entry() {
    let mut entry = vec![0x80, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    entry.extend(7u64.to_le_bytes());
    entry.extend([4, 2, 0, b'u', b'p']);
    let mut body = (entry.len() as u32 + 3).to_le_bytes().to_vec();
    body.extend(&entry);
    body.extend([1, 2, 3]);
    let mut client = Client::new(1, MSIZE);
    let list = Request::Readdir {
        fid: Fid(0),
        offset: 0,
        count: 100,
    };
    let (tag, _) = client.begin(&list, &mut [0; MSIZE]).unwrap();
    let answer = message(41, 0, &body);
    let Ok(Reply::Directory(list)) = client.finish(tag, &answer) else {
        panic!("no list")
    };
    let entries: Vec<_> = list.iter().collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].name, entries[0].next, entries[0].kind),
        (&b"up"[..], 7, 4)
    );
    assert!(entries[0].qid.is_directory());
}

#[test]
fn a_lock_that_somebody_has_is_told_from_an_error() {
    let kind = ninep::LockKind::Write;
    let lock = Request::Lock {
        fid: Fid(1),
        kind,
        start: 0,
        length: 0,
        owner: 1,
        client: b"sietch",
    };
    let mut client = Client::new(1, MSIZE);
    let (tag, _) = client.begin(&lock, &mut [0; MSIZE]).unwrap();
    let answer = message(53, 0, &[1]);
    let reply = client.finish(tag, &answer);
    assert!(matches!(reply, Ok(Reply::Lock(Lock::Blocked))));
}

/// Random bytes, mostly behind a plausible header, to every kind of request.
#[test]
fn no_reply_makes_the_client_panic_or_keep_a_tag() {
    let fid = Fid(1);
    let requests = [
        Request::Version { msize: 256 },
        Request::Walk {
            fid,
            new: Fid(2),
            names: &[b"a", b"b"],
        },
        Request::Lopen { fid, flags: 0 },
        Request::Read {
            fid,
            offset: 0,
            count: 64,
        },
        Request::Readdir {
            fid,
            offset: 0,
            count: 64,
        },
        Request::Getattr { fid },
        Request::Statfs { fid },
        Request::Readlink { fid },
    ];
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    let mut client = Client::new(1, MSIZE);
    for round in 0..20_000 {
        let request = requests[round % requests.len()];
        let (tag, _) = client.begin(&request, &mut [0; MSIZE]).unwrap();
        let body: Vec<u8> = (0..random()).map(|_| random() & random()).collect();
        let tag_bytes = if request.kind() == Kind::Version {
            0xffff
        } else {
            0
        };
        let answer = message(request.kind() as u8 + 1, tag_bytes, &body);
        if let Ok(reply) = client.finish(tag, &answer) {
            match reply {
                Reply::Directory(list) => assert!(list.iter().count() <= 64 / 24),
                Reply::Walk(qids) => assert_eq!(qids.iter().count(), qids.count()),
                _ => {}
            }
        }
        assert_eq!(client.in_flight(), 0);
    }
}
