use alloc::vec::Vec;

use super::*;

fn encoded(frame: Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

/// Feeds `bytes` in pieces of `piece`; what each frame was turned into, and whether the stream was understood.
fn decoded(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = Decoder::default();
    let (mut frames, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let room = decoder.wanted();
        let count = room.len().min(rest.len()).min(piece);
        room[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        match decoder
            .note(count)
            .map(|is_whole| is_whole.then(|| decoder.frame()))
        {
            Ok(None) => {}
            Ok(Some(Ok(frame))) => frames.push(encoded(frame)),
            Ok(Some(Err(Malformed))) | Err(Malformed) => return (frames, false),
        }
    }
    (frames, true)
}

fn examples() -> Vec<Message<'static>> {
    let window = Window {
        rows: 24,
        columns: 80,
    };
    [
        Message::ExecPart(b"a"),
        Message::Exec(b"bc"),
        Message::Stdin(&[7; PAYLOAD_BYTES_MAX]),
        Message::StdinEnd,
        Message::Window(window),
        Message::Signal(15),
        Message::Close,
        Message::Renew(Renewal {
            since_1970_ns: 1 << 60,
            seed: [9; SEED_BYTES],
        }),
        Message::Credit(70_000),
        Message::Stdout(b""),
        Message::Stderr(b"x"),
        Message::Exit(3),
        Message::Refused(Refusal::Other),
    ]
    .into()
}

#[test]
fn frames_come_out_as_they_went_in_however_they_are_cut() {
    let mut stream = Vec::new();
    for (channel, message) in (1..).zip(examples()) {
        stream.extend(encoded(Frame { channel, message }));
    }
    for piece in [1, 2, 5, 6, 7, 4096, 100_000] {
        let (frames, is_understood) = decoded(&stream, piece);
        assert!(is_understood);
        assert_eq!(frames.concat(), stream, "pieces of {piece}");
        assert_eq!(frames.len(), examples().len());
    }
}

#[test]
fn what_is_no_frame_is_refused() {
    for bytes in [
        &[1, 0, 0, 0, 0, 0][..],
        &[1, 0, 99, 0, 0, 0],
        &[1, 0, 3, 1, 0, 0],
        &[1, 0, 3, 0, 1, 16],
        &[1, 0, 4, 0, 1, 0, 0],
        &[1, 0, 12, 0, 1, 0, 200],
    ] {
        assert!(!decoded(bytes, 100).1, "{bytes:?}");
    }
}

#[test]
fn any_bytes_are_taken_without_a_panic() {
    const SEED: u64 = 0x1234_5678_9abc_def1;
    let mut state = SEED;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..20_000 {
        let len = random() as usize % 64;
        let mut bytes: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        // Half of them look like a frame at least.
        if round % 2 == 0 && len > HEADER_BYTES {
            bytes[2] %= 14;
            bytes[3] = 0;
            bytes[4] = (len - HEADER_BYTES) as u8;
            bytes[5] = 0;
        }
        decoded(&bytes, 1 + random() as usize % 9);
        if let Some(request) = Request::decode(&bytes) {
            assert_eq!(
                request.encode().as_deref().map(Request::decode),
                Some(Some(request)),
                "{SEED:#x}"
            );
        }
    }
}

#[test]
fn a_request_comes_out_as_it_went_in() {
    let arguments = block([&b"ls"[..], b"-l", b""]).expect("short");
    let environment = block([&b"A=b"[..]]).expect("short");
    let request = Request {
        task: Task::Run,
        terminal: Some(Window {
            rows: 1,
            columns: 2,
        }),
        has_input: true,
        is_detached: false,
        user: Some((5, 6)),
        directory: b"/tmp",
        arguments: Strings::of_block(&arguments).expect("a block"),
        environment: Strings::of_block(&environment).expect("a block"),
    };
    let bytes = request.encode().expect("short");
    assert_eq!(Request::decode(&bytes), Some(request));
    for end in 0..bytes.len() {
        assert_eq!(Request::decode(&bytes[..end]), None, "cut at {end}");
    }
}

#[test]
fn each_task_comes_out_as_it_went_in() {
    let arguments = block([&b"/etc"[..]]).expect("short");
    let depths = [Depth::Look, Depth::List, Depth::All];
    let sends = depths
        .into_iter()
        .flat_map(|depth| [false, true].map(|follows| Task::Send { depth, follows }));
    for task in sends.chain([Task::Run, Task::Receive, Task::AddLinks, Task::RemoveLinks]) {
        let request = Request {
            task,
            arguments: Strings::of_block(&arguments).expect("a block"),
            ..Request::default()
        };
        let bytes = request.encode().expect("short");
        assert_eq!(Request::decode(&bytes), Some(request));
    }
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let header = tree::Header {
        kind: tree::Kind::File,
        name_len: 4095,
        target_len: 7,
        mode: 0o4755,
        uid: u32::MAX,
        gid: 1,
        modified: (-5, 999_999_999),
        size: u64::MAX,
    };
    assert_eq!(tree::Header::decode(&header.encode()), Some(header));
    for (at, byte) in [(0, 8), (1, 1), (3, 16), (5, 16), (27, 255)] {
        let mut bytes = header.encode();
        bytes[at] = byte;
        assert_eq!(tree::Header::decode(&bytes), None, "byte {at}");
    }
    for code in 0..12 {
        let trouble = tree::Trouble::of_code(code);
        let header = tree::Header::of_trouble(trouble, 0);
        assert_eq!(header.mode, code);
    }
    assert_eq!(tree::Trouble::of_code(99), tree::Trouble::Other);
}

#[test]
fn a_name_that_leads_out_of_the_tree_has_no_components() {
    let parts = |name: &'static [u8]| tree::components(name).map(Iterator::collect::<Vec<_>>);
    assert_eq!(parts(b""), Some(Vec::new()));
    assert_eq!(parts(b"a/..b/c"), Some([&b"a"[..], b"..b", b"c"].into()));
    for wrong in [
        &b"/"[..],
        b"/a",
        b"a/",
        b"a//b",
        b"..",
        b"a/../b",
        b"./a",
        b"a/.",
        b"a\0",
    ] {
        assert_eq!(parts(wrong), None, "{}", wrong.escape_ascii());
    }
}

#[test]
fn a_request_without_a_program_or_with_a_nul_is_none() {
    let of = |arguments: &[&[u8]]| {
        let bytes = block(arguments.iter().copied()).expect("short");
        let request = Request {
            arguments: Strings::of_block(&bytes).unwrap_or_default(),
            ..Request::default()
        };
        Request::decode(&request.encode().expect("short")).is_some()
    };
    assert!(of(&[b"a"]));
    assert!(!of(&[]));
    assert!(!of(&[b""]));
    assert!(!of(&[b"a", b"b\0c"]));
}

#[test]
fn statuses_are_those_of_docker() {
    assert_eq!(Refusal::NoProgram.status(), 127);
    assert_eq!(Refusal::NotExecutable.status(), 126);
    assert_eq!(Refusal::OutOfMemory.status(), 125);
}
