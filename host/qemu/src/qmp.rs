//! Asking QEMU itself: the QEMU Machine Protocol, one JSON object a line.
//!
//! QEMU serves one connection at a time; another one waits for its greeting.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::machine::{CARDS_HUB, WAY_OUT};

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a migration is looked at, or a door.
const POLL: Duration = Duration::from_millis(1);
/// What keeps the card's frames from its way out, and who brings those that may pass.
const GATE: &str = "gate";
const DOOR: &str = "door";
/// Where the others go.
const NOWHERE: &str = "nowhere";

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
        self.remove("netdev_del", &format!("port{number}"))?;
        self.remove("netdev_del", &format!("wire{number}"))
    }

    /// Makes a door to the way out of a machine that is on no switch, at which one calls at `socket`
    /// ([`crate::Machine::way_out_socket`]); the gate stands open meanwhile.
    pub fn add_door(&mut self, socket: &Path) -> io::Result<()> {
        let address = json!({"type": "unix", "data": {"path": socket.to_string_lossy()}});
        let listening = json!({"addr": address, "server": true, "wait": false});
        let ends = [
            (DOOR, json!({"type": "socket", "data": listening})),
            (NOWHERE, json!({"type": "null", "data": {}})),
        ];
        for (id, backend) in ends {
            self.execute("chardev-add", json!({"id": id, "backend": backend}))?;
        }
        Ok(())
    }

    /// Waits until somebody is at the door, and closes the gate: what the card sends does not reach the way out any more, but what
    /// comes by the door does. What the way out sends reaches the card as before.
    pub fn close_gate(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_somebody_at_door()? {
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(POLL);
        }
        let gate = json!({"qom-type": "filter-redirector", "id": GATE, "netdev": WAY_OUT,
            "queue": "rx", "indev": DOOR, "outdev": NOWHERE});
        self.execute("object-add", gate)
    }

    fn is_somebody_at_door(&mut self) -> io::Result<bool> {
        let ends = self.ask("query-chardev", json!({}))?;
        let mut ends = ends.as_array().into_iter().flatten();
        let door = ends.find(|end| end["label"] == DOOR);
        let state = door.and_then(|door| door["filename"].as_str());
        Ok(state.is_some_and(|state| !state.starts_with("disconnected")))
    }

    /// Opens the gate, if it is closed, and removes the door, or what there is of it.
    pub fn remove_door(&mut self) -> io::Result<()> {
        self.remove("object-del", GATE)?;
        self.remove("chardev-remove", DOOR)?;
        self.remove("chardev-remove", NOWHERE)
    }

    /// What is not there is as good.
    fn remove(&mut self, command: &str, id: &str) -> io::Result<()> {
        match self.execute(command, json!({"id": id})) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
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
                // Of objects and character devices only the words say so.
                let words = error["desc"].as_str().unwrap_or_default();
                let is_absent = error["class"] == "DeviceNotFound" || words.ends_with("not found");
                let kind = match is_absent {
                    true => io::ErrorKind::NotFound,
                    false => io::ErrorKind::Other,
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
                    true => json!({"error": {"class": "GenericError", "desc": "it is not found"}}),
                    false => json!({"return": []}),
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
    fn a_door_of_which_a_part_is_gone_is_removed() {
        let parts = [
            "object-del gate",
            "chardev-remove door",
            "chardev-remove nowhere",
        ];
        for part in parts {
            let asked = asked("door", part, |qmp| assert!(qmp.remove_door().is_ok()));
            assert_eq!(asked, parts);
        }
    }

    #[test]
    fn a_wire_of_which_an_end_is_gone_is_cut() {
        for end in ["netdev_del port3", "netdev_del wire3"] {
            let asked = asked("cut", end, |qmp| assert!(qmp.remove_wire(3).is_ok()));
            assert_eq!(asked, ["netdev_del port3", "netdev_del wire3"]);
        }
    }
}
