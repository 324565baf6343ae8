use core::cell::RefCell;
use core::net::Ipv4Addr;

use super::*;
use crate::addr::{Endpoint, Transport};
use crate::socket::SocketEntry;
use crate::tcp::{ConnectionEntry, State};

const ROWS: usize = 8;
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);

/// Memory, and what happens to it with each load.
struct Memory<F> {
    words: RefCell<Vec<u32>>,
    meanwhile: F,
}

impl<F: Fn(&mut Vec<u32>)> SharedMemory for Memory<F> {
    fn load(&self, at: usize) -> u32 {
        (self.meanwhile)(&mut self.words.borrow_mut());
        self.words.borrow()[at / WORD_BYTES]
    }

    fn store(&self, at: usize, value: u32) {
        self.words.borrow_mut()[at / WORD_BYTES] = value;
    }

    fn read(&self, _at: usize, _to: &mut [u8]) {
        unreachable!("tables are read by words")
    }

    fn write(&self, _at: usize, _from: &[u8]) {
        unreachable!("tables are written by words")
    }
}

fn table<F: Fn(&mut Vec<u32>)>(meanwhile: F) -> StackTable<Memory<F>> {
    let bytes = StackTable::<()>::bytes(ROWS);
    let words = RefCell::new(vec![0; bytes / WORD_BYTES]);
    StackTable::new(Memory { words, meanwhile }, ROWS)
}

fn still() -> StackTable<Memory<impl Fn(&mut Vec<u32>)>> {
    table(|_| {})
}

fn row(state: State, peer: u16) -> StackRow {
    let remote = match peer {
        0 => Endpoint::v4(Ipv4Addr::UNSPECIFIED, 0),
        _ => Endpoint::v4(Ipv4Addr::new(10, 0, 2, 2), peer),
    };
    StackRow {
        number: Some(7),
        socket: SocketEntry {
            transport: Transport::Tcp,
            connection: ConnectionEntry {
                socket: None,
                state,
                local: Endpoint::v4(HOST, 6379),
                remote,
                unread: 3,
                unacked: 1 << 40,
            },
            info: None,
            buffers: [1, 2],
        },
    }
}

#[test]
fn sockets_are_read_as_they_were_written() {
    let table = still();
    let rows = [
        row(State::Listen, 0).encode(),
        None,
        row(State::Established, 9).encode(),
    ];
    table.write_rows(rows.into_iter());
    assert_eq!(table.count(), 3);
    let read = |at| StackRow::decode(&table.read_row(at)?, HOST);
    let connection = read(2).expect("it was written");
    assert_eq!(connection.number, Some(7));
    let entry = connection.socket.connection;
    assert_eq!(
        (entry.state, entry.local.port, entry.remote.port),
        (State::Established, 6379, 9)
    );
    assert_eq!((entry.unread, entry.unacked), (3, u32::MAX as usize));
    assert_eq!(
        read(0).map(|row| row.socket.connection.state),
        Some(State::Listen)
    );
    assert!(read(1).is_none() && read(3).is_none() && read(ROWS).is_none());
}

#[test]
fn a_row_is_free_when_its_socket_is_gone() {
    let table = still();
    table.write_rows([row(State::Listen, 0).encode()].into_iter());
    assert!(
        table
            .read_row(0)
            .is_some_and(|words| StackRow::decode(&words, HOST).is_some())
    );
    table.write_rows([None].into_iter());
    assert_eq!(table.read_row(0), Some([0; PAYLOAD_WORDS]));
}

#[test]
fn the_figures_of_a_connection_are_read_as_they_were_written() {
    let mut words: Payload = core::array::from_fn(|index| index as u32 + 1);
    words[0] = u32::from_ne_bytes([1, 1, 80, 0]);
    words[3] = u32::from_ne_bytes([1, 0, 1 | 2 | 4, 0]);
    words[17] = u32::from_ne_bytes([3, 2, 0, 0]);
    words[27..].fill(0);
    let row = StackRow::decode(&words, HOST).expect("it is a connection");
    assert_eq!(row.encode(), Some(words));
    assert!(row.socket.info.is_some());
}

#[test]
fn sockets_that_cannot_be_are_not_read() {
    for (state, peer) in [
        (State::Closed, 9),
        (State::Listen, 9),
        (State::Established, 0),
    ] {
        let words = row(state, peer).encode().expect("it is of IPv4");
        assert!(StackRow::decode(&words, HOST).is_none(), "{state:?} {peer}");
    }
}

#[test]
fn any_words_are_nothing_or_a_socket_of_the_address() {
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 32) as u32
    };
    let mut possible = 0;
    for _ in 0..100_000 {
        let mut words: Payload = core::array::from_fn(|_| random());
        words[0] &= 0xffff_0f03;
        if let Some(row) = StackRow::decode(&words, HOST) {
            possible += 1;
            let entry = row.socket.connection;
            assert_eq!(entry.local.addr, core::net::IpAddr::V4(HOST));
            assert!(entry.local.port != 0 && row.encode().is_some());
        }
    }
    assert!(possible > 1000, "{possible}");
}

#[test]
fn a_row_that_changes_all_the_time_is_left_out() {
    let at = HEAD_BYTES / WORD_BYTES;
    let changing = table(|words| words[at] = words[at].wrapping_add(2));
    changing.write_rows([row(State::Listen, 0).encode()].into_iter());
    assert_eq!(changing.read_row(0), None);
    let odd = table(|words| words[at] = 1);
    assert_eq!(odd.read_row(0), None);
}

#[test]
fn a_count_and_a_length_are_bounded_by_the_table() {
    let table = still();
    table.write_rows(core::iter::repeat_n(None, ROWS + 5));
    assert_eq!(table.count(), ROWS);
    table.memory.store(COUNT, u32::MAX);
    assert_eq!(table.count(), ROWS);
    table.memory.store(TEXT_LENGTH, u32::MAX);
    assert_eq!(table.read_counters(), []);
}

#[test]
fn counters_are_read_line_by_line_and_others_left_out() {
    let table = still();
    table.write_text("stack tcp_in 7\ndrop \u{1b}[2J 1\nbad\nstack a b c\nstack x -1\nring y 18446744073709551615\n");
    let found: Vec<_> = table.read_counters();
    let found: Vec<_> = found
        .iter()
        .map(|one| (&*one.group, &*one.name, one.value))
        .collect();
    assert_eq!(found, [("stack", "tcp_in", 7), ("ring", "y", u64::MAX)]);
    let long = "stack counter 1\n".repeat(TEXT_BYTES);
    table.write_text(&long);
    assert_eq!(table.read_counters().len(), TEXT_BYTES / 16);
}

#[test]
fn a_question_stays_until_it_is_answered() {
    let table = still();
    assert_eq!(table.question(), None);
    table.ask(5);
    let question = table.question().expect("somebody looks");
    table.answer(question);
    assert_eq!((table.question(), table.answered()), (None, 5));
}
