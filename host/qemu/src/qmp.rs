//! Asking QEMU itself: the QEMU Machine Protocol, one JSON object a line.
//!
//! QEMU serves one connection at a time; another one waits for its greeting.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::CARDS_HUB;

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a migration is looked at.
const POLL: Duration = Duration::from_millis(1);

/// A connection to QEMU.
#[derive(Debug)]
pub struct Qmp {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Qmp {
    /// Connects to the socket of a machine ([`crate::Machine::qmp_socket`]).
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let writer = UnixStream::connect(socket)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(writer.try_clone()?);
        let mut qmp = Self { reader, writer };
        qmp.read_object()?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Copies `bytes` of the machine's memory from the physical address `at` into a file.
    pub fn save_memory(&mut self, at: u64, bytes: u64, file: &Path) -> io::Result<()> {
        let arguments = json!({"val": at, "size": bytes, "filename": file.to_string_lossy()});
        self.execute("pmemsave", arguments)
    }

    /// Stops the machine: its CPUs and their counters stand.
    pub fn stop(&mut self) -> io::Result<()> {
        self.execute("stop", json!({}))
    }

    /// Lets a stopped machine run on.
    pub fn resume(&mut self) -> io::Result<()> {
        self.execute("cont", json!({}))
    }

    /// Whether the machine runs, and if not why, in QEMU's words (`running`, `paused`, `io-error`).
    pub fn status(&mut self) -> io::Result<String> {
        let status = self.ask("query-status", json!({}))?;
        Ok(status["status"].as_str().unwrap_or_default().into())
    }

    /// Gives the disk of that number, by their order, another size.
    pub fn resize_disk(&mut self, number: usize, bytes: u64) -> io::Result<()> {
        let arguments = json!({"node-name": format!("disk{number}"), "size": bytes});
        self.execute("block_resize", arguments)
    }

    /// Has that disk, which is of virtio, do so many requests of 512 bytes a second, longer ones for so much
    /// longer; 0 for as many as it can.
    pub fn throttle_disk(&mut self, number: usize, requests: u64) -> io::Result<()> {
        let backend = format!("/machine/peripheral/drive{number}/virtio-backend");
        let mut arguments = json!({"id": backend, "iops": requests});
        for limit in ["bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"] {
            arguments[limit] = json!(0);
        }
        if requests != 0 {
            arguments["iops_size"] = json!(512);
        }
        self.execute("block_set_io_throttle", arguments)
    }

    /// Leads the card of a machine on a switch to one more, which calls at `socket`
    /// ([`crate::Machine::socket_of_switch`]), and waits until it has. QEMU falls over a frame for a stream at which nobody
    /// has called since it was made, so the hub has no port for it before.
    pub fn add_wire(&mut self, number: u8, socket: &Path) -> io::Result<()> {
        let (wire, port) = (format!("wire{number}"), format!("port{number}"));
        let address = json!({"type": "unix", "path": socket.to_string_lossy()});
        let stream = json!({"type": "stream", "id": wire, "server": true, "addr": address});
        self.execute("netdev_add", stream)?;
        let added = self.wait_for_caller(&wire).and_then(|()| {
            let port = json!({"type": "hubport", "id": port, "hubid": CARDS_HUB, "netdev": wire});
            self.execute("netdev_add", port)
        });
        if added.is_err() {
            let _ = self.execute("netdev_del", json!({"id": wire}));
        }
        added
    }

    fn wait_for_caller(&mut self, wire: &str) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.read_object()?;
            if event["event"] == "NETDEV_STREAM_CONNECTED" && event["data"]["netdev-id"] == wire {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Cuts such a wire, or what there is of it.
    pub fn remove_wire(&mut self, number: u8) -> io::Result<()> {
        for end in ["port", "wire"] {
            match self.execute("netdev_del", json!({"id": format!("{end}{number}")})) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                cut => cut?,
            }
        }
        Ok(())
    }

    /// Writes the machine's state to `uri`, and waits until it is there. The machine stands from then on.
    pub(crate) fn migrate(&mut self, uri: &str, patience: Duration) -> io::Result<()> {
        // The host's memory is the only limit.
        self.execute(
            "migrate-set-parameters",
            json!({"max-bandwidth": u64::from(u32::MAX)}),
        )?;
        self.execute("migrate", json!({"uri": uri}))?;
        self.wait_for_migration(patience)
    }

    /// Reads the state of a machine that waits for it from `uri`.
    pub(crate) fn receive(&mut self, uri: &str, patience: Duration) -> io::Result<()> {
        self.execute("migrate-incoming", json!({"uri": uri}))?;
        self.wait_for_migration(patience)
    }

    /// State is without memory that is a file which others see.
    pub(crate) fn leave_out_shared_memory(&mut self) -> io::Result<()> {
        let capability = json!({"capability": "x-ignore-shared", "state": true});
        self.execute(
            "migrate-set-capabilities",
            json!({"capabilities": [capability]}),
        )
    }

    /// Waits until the state has come or gone.
    pub(crate) fn wait_for_migration(&mut self, patience: Duration) -> io::Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let progress = self.ask("query-migrate", json!({}))?;
            match progress["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    let reason = progress["error-desc"].as_str().unwrap_or("it says no more");
                    return Err(io::Error::other(reason.to_string()));
                }
                _ if Instant::now() > deadline => return Err(io::ErrorKind::TimedOut.into()),
                _ => thread::sleep(POLL),
            }
        }
    }

    /// Ends a migration that is under way, if there is one, and waits for that end.
    pub(crate) fn cancel_migration(&mut self, patience: Duration) -> io::Result<()> {
        self.execute("migrate_cancel", json!({}))?;
        let deadline = Instant::now() + patience;
        loop {
            let progress = self.ask("query-migrate", json!({}))?;
            match progress["status"].as_str() {
                None | Some("none" | "completed" | "failed" | "cancelled") => return Ok(()),
                _ if Instant::now() > deadline => return Err(io::ErrorKind::TimedOut.into()),
                _ => thread::sleep(POLL),
            }
        }
    }

    pub(crate) fn execute(&mut self, command: &str, arguments: Value) -> io::Result<()> {
        self.ask(command, arguments).map(drop)
    }

    pub(crate) fn ask(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        let request = json!({"execute": command, "arguments": arguments});
        // At once: QEMU wakes up for each piece.
        self.writer.write_all(format!("{request}\n").as_bytes())?;
        loop {
            let answer = self.read_object()?;
            if let Some(error) = answer.get("error") {
                let kind = match error["class"].as_str() {
                    Some("DeviceNotFound") => io::ErrorKind::NotFound,
                    _ => io::ErrorKind::Other,
                };
                let words = format!("QEMU refuses {command}: {error}");
                return Err(io::Error::new(kind, words));
            }
            // Events come in between.
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
        }
    }

    fn read_object(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What a QEMU is asked that refuses `refused`.
    fn asked(name: &str, refused: &'static str, act: impl FnOnce(&mut Qmp)) -> Vec<String> {
        let name = format!("sietch-qmp-{name}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a socket");
        let serving = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a connection");
            let lines = BufReader::new(peer.try_clone().expect("a copy")).lines();
            writeln!(peer, "{{\"QMP\": {{}}}}").expect("a greeting");
            let mut asked = Vec::new();
            for line in lines.map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).expect("JSON");
                let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
                let own = word(&request["execute"]) + " " + &word(&request["arguments"]["id"]);
                let answer = match own == refused {
                    true => json!({"error": {"class": "DeviceNotFound", "desc": "no"}}),
                    false => json!({"return": {}}),
                };
                writeln!(peer, "{answer}").expect("an answer");
                if own.starts_with("netdev_add wire") {
                    let data = json!({"netdev-id": "wire3"});
                    let event = json!({"event": "NETDEV_STREAM_CONNECTED", "data": data});
                    // Of a refused one nobody waits for it.
                    let _ = writeln!(peer, "{}\n{event}", json!({"event": "RTC_CHANGE"}));
                }
                asked.push(own);
            }
            asked
        });
        let mut qmp = Qmp::connect(&socket).expect("a server");
        act(&mut qmp);
        drop(qmp);
        std::fs::remove_file(socket).expect("ours");
        let asked = serving.join().expect("a server");
        asked.into_iter().skip(1).collect()
    }

    #[test]
    fn a_wire_is_made_as_a_whole_or_not_at_all() {
        let add = |qmp: &mut Qmp| qmp.add_wire(3, Path::new("/s/card3.sock")).is_ok();
        let whole = asked("whole", "", |qmp| assert!(add(qmp)));
        assert_eq!(whole, ["netdev_add wire3", "netdev_add port3"]);
        let half = asked("half", "netdev_add port3", |qmp| assert!(!add(qmp)));
        assert_eq!(half[2..], ["netdev_del wire3"]);
        let none = asked("none", "netdev_add wire3", |qmp| assert!(!add(qmp)));
        assert_eq!(none, ["netdev_add wire3"]);
    }

    #[test]
    fn a_wire_of_which_an_end_is_gone_is_cut() {
        for end in ["netdev_del port3", "netdev_del wire3"] {
            let asked = asked("cut", end, |qmp| assert!(qmp.remove_wire(3).is_ok()));
            assert_eq!(asked, ["netdev_del port3", "netdev_del wire3"]);
        }
    }
}
