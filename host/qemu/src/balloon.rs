//! The balloon of a machine that runs: how much memory it has, and what it does with it.
//!
//! QEMU asks the machine how its memory is used at an interval only, the first time when the interval is set. So whoever
//! wants to know sets the longest there is, and the machine is left alone afterwards, also if he is killed meanwhile.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::qmp::Qmp;

/// The device's name.
pub(crate) const ID: &str = "balloon";
/// Where QEMU keeps it.
const PATH: &str = "/machine/peripheral/balloon";
/// How often is looked whether the machine has said something.
const ANSWER_POLL: Duration = Duration::from_millis(10);
/// How long a machine may take to say how it uses memory.
const ANSWER_PATIENCE: Duration = Duration::from_millis(500);
/// How often is looked whether its memory changes.
const POLL: Duration = Duration::from_millis(50);
/// A machine whose memory does not change for so long has given what it can.
const REST: Duration = Duration::from_secs(3);
/// How long it may go on changing.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);

/// What a machine says of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestMemory {
    /// What its kernel has.
    pub total_bytes: u64,
    /// What programs could have more.
    pub available_bytes: u64,
}

impl GuestMemory {
    /// What cannot be had by others.
    pub fn used_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.available_bytes)
    }

    /// As QEMU says it, if that is from `since_s` or later, in seconds since 1970.
    fn parse(answer: &Value, since_s: u64) -> Option<Self> {
        let is_fresh = answer["last-update"].as_u64()? >= since_s;
        // What was never said has all bits set.
        let figure = |name| {
            let value = answer["stats"][name].as_u64();
            value.filter(|value| is_fresh && *value != u64::MAX)
        };
        Some(Self {
            total_bytes: figure("stat-total-memory")?,
            available_bytes: figure("stat-available-memory")?,
        })
    }
}

/// Asks the machine with a balloon that has this socket ([`crate::Machine::qmp_socket`]) to have `bytes`, at most what it was
/// started with, and waits until it has them or goes no further; what it has then.
///
/// Each look is a connection of its own, as QEMU serves one at a time, and others have questions meanwhile.
pub fn set_balloon(socket: &Path, bytes: u64) -> io::Result<u64> {
    settle(socket, bytes, REST)
}

fn settle(socket: &Path, bytes: u64, rest: Duration) -> io::Result<u64> {
    Qmp::connect(socket)?.execute("balloon", json!({"value": bytes}))?;
    let deadline = Instant::now() + SETTLE_PATIENCE;
    let look = || Qmp::connect(socket)?.balloon();
    let (mut has, mut since) = (look()?, Instant::now());
    while has != bytes && since.elapsed() < rest && Instant::now() < deadline {
        thread::sleep(POLL);
        let now = look()?;
        if now != has {
            (has, since) = (now, Instant::now());
        }
    }
    Ok(has)
}

impl Qmp {
    /// Bytes that a machine with a balloon has.
    pub fn balloon(&mut self) -> io::Result<u64> {
        let answer = self.ask("query-balloon", json!({}))?;
        let bytes = answer["actual"].as_u64();
        bytes.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// What such a machine does with its memory; `None` if it does not say so soon.
    pub fn guest_memory(&mut self) -> io::Result<Option<GuestMemory>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_s = since.map_or(0, |since| since.as_secs());
        self.have_guest_asked()?;
        let deadline = Instant::now() + ANSWER_PATIENCE;
        loop {
            let property = json!({"path": PATH, "property": "guest-stats"});
            // Before the first answer some versions have no figures, but an error.
            let answer = self.ask("qom-get", property).unwrap_or_default();
            let memory = GuestMemory::parse(&answer, since_s);
            if memory.is_some() || Instant::now() > deadline {
                return Ok(memory);
            }
            thread::sleep(ANSWER_POLL);
        }
    }

    /// Has QEMU ask the machine now. An interval begins with a question where there was none before.
    fn have_guest_asked(&mut self) -> io::Result<()> {
        for seconds in [0, u32::MAX] {
            let property = "guest-stats-polling-interval";
            let arguments = json!({"path": PATH, "property": property, "value": seconds});
            self.execute("qom-set", arguments)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    /// A QEMU with a balloon: the sizes that it has one after the other, and what it knows of its machine.
    struct Played {
        sizes: std::vec::IntoIter<u64>,
        stats: Value,
        /// What it was asked, connections by `qmp_capabilities`.
        asked: Vec<String>,
    }

    impl Played {
        fn serve(&mut self, mut peer: UnixStream) {
            let lines = BufReader::new(peer.try_clone().expect("a copy")).lines();
            writeln!(peer, "{{\"QMP\": {{}}}}").expect("a greeting");
            for line in lines.map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).expect("JSON");
                let command = request["execute"].as_str().expect("a command");
                let value = &request["arguments"]["value"];
                self.asked.push(format!("{command} {value}"));
                let answer = match command {
                    "query-balloon" => json!({"actual": self.sizes.next().expect("a size")}),
                    "qom-get" => self.stats.clone(),
                    _ => json!({}),
                };
                // An event comes in between.
                writeln!(peer, "{}", json!({"event": "BALLOON_CHANGE"})).expect("an event");
                writeln!(peer, "{}", json!({"return": answer})).expect("an answer");
            }
        }
    }

    /// A socket at which so many connections are served one after the other, and what was asked.
    fn serve(
        name: &str,
        connections: usize,
        sizes: Vec<u64>,
        stats: Value,
    ) -> (PathBuf, JoinHandle<Vec<String>>) {
        let name = format!("sietch-balloon-{name}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a socket");
        let mut played = Played {
            sizes: sizes.into_iter(),
            stats,
            asked: Vec::new(),
        };
        let serving = thread::spawn(move || {
            for _ in 0..connections {
                let (peer, _) = listener.accept().expect("a connection");
                played.serve(peer);
            }
            played.asked
        });
        (socket, serving)
    }

    #[test]
    fn a_machine_is_waited_for_by_looks_between_which_others_can_ask() {
        let (socket, serving) = serve("set", 5, vec![30, 20, 20, 10], Value::Null);
        assert_eq!(settle(&socket, 10, SETTLE_PATIENCE).expect("answers"), 10);
        let asked = serving.join().expect("a server");
        assert_eq!(asked[..2], ["qmp_capabilities null", "balloon 10"]);
        for look in asked[2..].chunks(2) {
            assert_eq!(look, ["qmp_capabilities null", "query-balloon null"]);
        }
        std::fs::remove_file(socket).expect("ours");
    }

    #[test]
    fn a_machine_is_asked_for_figures_once_and_then_left_alone() {
        let stats = json!({"stat-total-memory": 9, "stat-available-memory": 2});
        let stats = json!({"stats": stats, "last-update": u64::MAX});
        let (socket, serving) = serve("figures", 1, Vec::new(), stats);
        let mut qmp = Qmp::connect(&socket).expect("a server");
        let memory = qmp.guest_memory().expect("answers").expect("figures");
        assert_eq!(memory.used_bytes(), 7);
        drop(qmp);
        let asked = serving.join().expect("a server");
        assert_eq!(
            asked[1..],
            ["qom-set 0", "qom-set 4294967295", "qom-get null"]
        );
        std::fs::remove_file(socket).expect("ours");
    }

    #[test]
    fn figures_count_if_they_are_fresh_and_were_said() {
        let answer = json!({
            "stats": {
                "stat-total-memory": 4096,
                "stat-available-memory": 1024,
                "stat-swap-in": u64::MAX,
            },
            "last-update": 77,
        });
        let memory = GuestMemory::parse(&answer, 77);
        assert_eq!(memory.map(|memory| memory.used_bytes()), Some(3072));
        assert_eq!(GuestMemory::parse(&answer, 78), None);
        let mut silent = answer;
        silent["stats"]["stat-available-memory"] = json!(u64::MAX);
        assert_eq!(GuestMemory::parse(&silent, 77), None);
        assert_eq!(GuestMemory::parse(&Value::Null, 0), None);
    }
}
