//! Dumps in buffers of any size: all objects, in order, once.

use netlink::{
    Dump, Emit, Flags, Header, Messages, NoRoom, Object, Progress, Request, Route, Writer,
};

use crate::parse;

const REQUEST: Header = Header {
    kind: 26,
    flags: Flags(0x301),
    sequence: 77,
    port: 0,
};

fn routes() -> Vec<Route<'static>> {
    (0..100)
        .map(|metric| Route {
            family: 2,
            metric: Some(metric),
            // Of two sizes, so that ends of buffers meet both.
            mtu: (metric % 3 == 0).then_some(1300),
            ..Route::default()
        })
        .collect()
}

/// The metrics of all routes in the answers, and how many buffers those took.
fn dumped(buffer_bytes: usize) -> (Vec<u32>, usize) {
    let (routes, dump) = (routes(), Dump::new(&REQUEST, 9));
    let (mut cursor, mut buffers, mut metrics) = (0, 0, Vec::new());
    loop {
        let mut buffer = vec![0xee; buffer_bytes];
        let mut writer = Writer::new(&mut buffer);
        let progress = dump.fill(&mut writer, routes[cursor..].iter().copied());
        let len = writer.len();
        let mut kinds = Vec::new();
        for message in Messages::new(&buffer[..len]) {
            let header = message.header();
            assert_eq!((header.sequence, header.port), (77, 9));
            assert!(header.flags.any(Flags::MULTI));
            kinds.push(header.kind);
            if let Ok(Request {
                object: Object::Route(route),
                ..
            }) = Request::parse(&message)
            {
                metrics.extend(route.metric);
            }
        }
        buffers += 1;
        match progress {
            Progress::More { taken } => {
                assert_eq!(kinds, vec![24; taken]);
                cursor += taken;
            }
            Progress::Done => {
                assert_eq!(kinds.pop(), Some(3));
                assert_eq!(kinds.len(), routes.len() - cursor);
                return (metrics, buffers);
            }
            Progress::TooLarge => panic!("a route fits in {buffer_bytes}"),
        }
    }
}

#[test]
fn a_dump_comes_whole_and_in_order_in_buffers_of_any_size() {
    for buffer_bytes in 56..400 {
        let (metrics, buffers) = dumped(buffer_bytes);
        assert_eq!(metrics, (0..100).collect::<Vec<_>>(), "{buffer_bytes}");
        assert!(buffers >= 100 * 44 / buffer_bytes);
    }
    assert_eq!(dumped(64 << 10).1, 1);
}

#[test]
fn an_object_that_no_buffer_holds_ends_the_dump() {
    let dump = Dump::new(&REQUEST, 0);
    for buffer_bytes in [0, 15, 16, 43] {
        let mut buffer = vec![0; buffer_bytes];
        let mut writer = Writer::new(&mut buffer);
        let progress = dump.fill(&mut writer, routes().into_iter());
        assert_eq!(progress, Progress::TooLarge, "{buffer_bytes}");
    }
}

#[test]
fn flags_of_the_dump_are_on_each_message() {
    let mut dump = Dump::new(&REQUEST, 0);
    dump.flags = Flags::DUMP_INTERRUPTED | Flags::DUMP_FILTERED;
    let mut buffer = [0; 256];
    dump.fill(&mut Writer::new(&mut buffer), routes().into_iter().take(2));
    let flags: Vec<_> = Messages::new(&buffer)
        .map(|one| one.header().flags.0)
        .collect();
    assert_eq!(flags, [0x32; 3]);
}

#[test]
fn a_message_without_room_leaves_the_buffer_as_it_was() {
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer);
    let route = routes()[0];
    route.answer(1, 2, &mut writer).expect("room");
    let len = writer.len();
    assert_eq!(route.answer(1, 2, &mut writer), Err(NoRoom));
    assert_eq!(writer.len(), len);
    assert_eq!(parse(&buffer[..len]).object, Object::Route(route));
}
