//! The balloon of a machine that runs: how much memory it has, and what it does with it.
//!
//! QEMU asks the machine how its memory is used at an interval only. The interval is set for as long as somebody wants to
//! know, and the machine is left alone at other times.

use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::qmp::Qmp;

/// The device's name.
pub(crate) const ID: &str = "balloon";
/// Where QEMU keeps it.
const PATH: &str = "/machine/peripheral/balloon";
/// How often is looked whether the machine has done or said something.
const POLL: Duration = Duration::from_millis(10);
/// How long a machine may take to say how it uses memory.
const ANSWER_PATIENCE: Duration = Duration::from_millis(500);
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

impl Qmp {
    /// Bytes that a machine with a balloon has.
    pub fn balloon(&mut self) -> io::Result<u64> {
        let answer = self.ask("query-balloon", json!({}))?;
        let bytes = answer["actual"].as_u64();
        bytes.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Asks such a machine to have `bytes`, at most what it was started with, and waits until it has them or goes no further;
    /// what it has then.
    pub fn set_balloon(&mut self, bytes: u64) -> io::Result<u64> {
        self.execute("balloon", json!({"value": bytes}))?;
        let deadline = Instant::now() + SETTLE_PATIENCE;
        let mut last = (self.balloon()?, Instant::now());
        while last.0 != bytes && last.1.elapsed() < REST && Instant::now() < deadline {
            thread::sleep(POLL);
            let now = self.balloon()?;
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(last.0)
    }

    /// What such a machine does with its memory; `None` if it does not say so soon.
    pub fn guest_memory(&mut self) -> io::Result<Option<GuestMemory>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_s = since.map_or(0, |since| since.as_secs());
        self.ask_each(1)?;
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let found = loop {
            let property = json!({"path": PATH, "property": "guest-stats"});
            // Before the first answer some versions have no figures, but an error.
            let answer = self.ask("qom-get", property).unwrap_or_default();
            let memory = GuestMemory::parse(&answer, since_s);
            if memory.is_some() || Instant::now() > deadline {
                break memory;
            }
            thread::sleep(POLL);
        };
        self.ask_each(0)?;
        Ok(found)
    }

    /// Has QEMU ask the machine each so many seconds; 0 for never.
    fn ask_each(&mut self, seconds: u32) -> io::Result<()> {
        let property = "guest-stats-polling-interval";
        let arguments = json!({"path": PATH, "property": property, "value": seconds});
        self.execute("qom-set", arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    /// A QEMU with a balloon that has these sizes one after the other, and answers with `stats`; what it was asked comes back
    /// at its end.
    fn serve(name: &str, sizes: Vec<u64>, stats: Value) -> (PathBuf, JoinHandle<Vec<String>>) {
        let name = format!("sietch-balloon-{name}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a socket");
        let serving = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let lines = BufReader::new(peer.try_clone().expect("a copy")).lines();
            writeln!(peer, "{{\"QMP\": {{}}}}").expect("a greeting");
            let mut sizes = sizes.into_iter();
            let mut asked = Vec::new();
            for line in lines.map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).expect("JSON");
                let command = request["execute"].as_str().expect("a command");
                let value = &request["arguments"]["value"];
                asked.push(format!("{command} {value}"));
                let answer = match command {
                    "query-balloon" => json!({"actual": sizes.next().expect("no more looks")}),
                    "qom-get" => stats.clone(),
                    _ => json!({}),
                };
                // An event comes in between.
                writeln!(peer, "{}", json!({"event": "BALLOON_CHANGE"})).expect("an event");
                writeln!(peer, "{}", json!({"return": answer})).expect("an answer");
            }
            asked
        });
        (socket, serving)
    }

    #[test]
    fn a_machine_is_waited_for_until_it_has_what_it_was_asked_to_have() {
        let (socket, serving) = serve("set", vec![30, 20, 20, 10], Value::Null);
        let mut qmp = Qmp::connect(&socket).expect("a server");
        assert_eq!(qmp.set_balloon(10).expect("answers"), 10);
        drop(qmp);
        let asked = serving.join().expect("a server");
        assert_eq!(asked[1], "balloon 10");
        assert_eq!(asked.len(), 2 + 4);
        std::fs::remove_file(socket).expect("ours");
    }

    #[test]
    fn a_machine_is_asked_for_figures_only_as_long_as_somebody_waits() {
        let stats = json!({"stat-total-memory": 9, "stat-available-memory": 2});
        let stats = json!({"stats": stats, "last-update": u64::MAX});
        let (socket, serving) = serve("figures", Vec::new(), stats);
        let mut qmp = Qmp::connect(&socket).expect("a server");
        let memory = qmp.guest_memory().expect("answers").expect("figures");
        assert_eq!(memory.used_bytes(), 7);
        drop(qmp);
        let asked = serving.join().expect("a server");
        assert_eq!(asked[1..], ["qom-set 1", "qom-get null", "qom-set 0"]);
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
