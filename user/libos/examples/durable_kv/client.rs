//! What a connection has under way, however its bytes come and go.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use crate::resp::{self, Command};
use crate::store::{Reply, Store};

/// With more answers waiting no request is executed.
const REPLIES_MAX: usize = 4096;
/// The same, of bytes of answers that wait for the disk, or that the peer does not take.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Bytes of requests that were not executed.
const RECEIVED_BYTES_MAX: usize = 4 << 20;

/// See the module.
#[derive(Default)]
pub struct Client {
    received: Vec<u8>,
    /// There was no room for the answer to the first of what is in `received`.
    is_cut: bool,
    /// In the order of the requests: the first waits until it is durable, all others for it.
    replies: VecDeque<Reply>,
    /// Bytes of them.
    reply_bytes: usize,
    /// Answers that may be said.
    pub unsent: Vec<u8>,
}

impl Client {
    /// Whether all that is left to do here waits for the disk.
    pub fn waits_for_disk(&self) -> bool {
        !self.replies.is_empty() && self.unsent.is_empty()
    }

    /// Whether there is nothing to say to it, now or later.
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.unsent.is_empty() && !self.is_cut
    }

    /// Whether it may ask for more.
    pub fn has_room(&self) -> bool {
        let bytes = self.reply_bytes + self.unsent.len();
        self.replies.len() < REPLIES_MAX && bytes < ANSWER_BYTES_MAX
    }

    /// Whether there is room now for answers that there was none for.
    pub fn may_go_on(&self) -> bool {
        self.is_cut && self.has_room()
    }

    /// Executes what has come, as far as there is room for answers.
    ///
    /// Errors: it is no request, or too much waits; the connection is to be ended.
    pub fn receive<'a>(
        &mut self,
        store: &mut Store,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> io::Result<()> {
        for bytes in pieces {
            self.received.extend_from_slice(bytes);
        }
        self.execute(store)?;
        match self.received.len() <= RECEIVED_BYTES_MAX {
            true => Ok(()),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }

    fn execute(&mut self, store: &mut Store) -> io::Result<()> {
        let mut done = 0;
        self.is_cut = loop {
            if !self.has_room() {
                break done < self.received.len();
            }
            let Some((words, len)) = resp::request(&self.received[done..])? else {
                break false;
            };
            let reply = store.execute(&Command::of(&words));
            self.reply_bytes += reply.bytes.len();
            self.replies.push_back(reply);
            done += len;
        };
        self.received.drain(..done);
        Ok(())
    }

    /// Puts what may be said by now to `unsent`, and goes on with requests that there was no room for: whether any was executed.
    /// What it leaves waits for the disk, or for who takes `unsent`.
    ///
    /// Errors: as above.
    pub fn answer(&mut self, store: &mut Store, durable: u64) -> io::Result<bool> {
        let mut has_gone_on = false;
        loop {
            while let Some(reply) = self.replies.pop_front_if(|reply| reply.needs <= durable) {
                self.reply_bytes -= reply.bytes.len();
                self.unsent.extend_from_slice(&reply.bytes);
            }
            if !self.may_go_on() {
                return Ok(has_gone_on);
            }
            self.execute(store)?;
            has_gone_on = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
    const PONG: &[u8] = b"+PONG\r\n";

    fn with_store(name: &str, test: impl FnOnce(&mut Store)) {
        let path = std::env::temp_dir().join(format!("durable-{name}-{}", std::process::id()));
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let mut store = Store::open(&path).unwrap();
        test(&mut store);
        std::fs::remove_file(&path).unwrap();
    }

    /// Takes all that may be said; how many bytes that is.
    fn hear(client: &mut Client, store: &mut Store) -> usize {
        let mut bytes = 0;
        loop {
            store.turn().unwrap();
            let durable = store.durable();
            let goes_on = client.answer(store, durable).unwrap();
            bytes += std::mem::take(&mut client.unsent).len();
            if !goes_on && !client.may_go_on() && client.is_idle() {
                return bytes;
            }
        }
    }

    #[test]
    fn all_that_was_asked_at_once_is_answered_though_there_is_no_room_for_it() {
        with_store("cut", |store| {
            let mut client = Client::default();
            let requests = PING.repeat(3 * REPLIES_MAX);
            client.receive(store, requests.chunks(1000)).unwrap();
            assert!(!client.has_room() && !client.is_idle());
            assert_eq!(hear(&mut client, store), 3 * REPLIES_MAX * PONG.len());
        });
    }

    #[test]
    fn no_answer_stays_behind_that_waits_for_nothing() {
        with_store("behind", |store| {
            let mut client = Client::default();
            let requests = PING.repeat(REPLIES_MAX + 10);
            client.receive(store, [&requests[..]]).unwrap();
            client.answer(store, 0).unwrap();
            assert_eq!(client.unsent.len(), (REPLIES_MAX + 10) * PONG.len());
        });
    }

    #[test]
    fn nothing_is_executed_for_who_takes_no_answers() {
        with_store("deaf", |store| {
            let mut client = Client::default();
            let set = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4096\r\n";
            let pieces: [&[u8]; 3] = [set, &[b'v'; 4096], b"\r\n"];
            client.receive(store, pieces).unwrap();
            hear(&mut client, store);
            let get = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
            client
                .receive(store, [&get.repeat(REPLIES_MAX)[..]])
                .unwrap();
            // What waits here is one answer more than there is room for, at most.
            let waits = |client: &Client| {
                let replies = client.replies.iter().map(|reply| reply.bytes.len());
                replies.sum::<usize>() + client.unsent.len()
            };
            assert!(waits(&client) < ANSWER_BYTES_MAX + 5000);
            client.answer(store, 1).unwrap();
            assert!(client.unsent.len() >= ANSWER_BYTES_MAX && !client.has_room());
            assert_eq!(waits(&client), client.unsent.len());
            let before = client.unsent.len();
            client.receive(store, [PING]).unwrap();
            client.answer(store, 1).unwrap();
            assert_eq!(client.unsent.len(), before);
            let answer = b"$4096\r\n".len() + 4096 + b"\r\n".len();
            let all = REPLIES_MAX * answer + PONG.len();
            assert_eq!(hear(&mut client, store), all);
        });
    }

    #[test]
    fn who_asks_on_without_taking_answers_is_sent_away() {
        with_store("flood", |store| {
            let mut client = Client::default();
            let requests = PING.repeat(10_000);
            let mut rounds = 0;
            while client.receive(store, [&requests[..]]).is_ok() {
                rounds += 1;
                assert!(rounds * requests.len() <= 2 * RECEIVED_BYTES_MAX);
            }
        });
    }
}
