//! One event, as the kernel writes and as a tool prints it.

/// The heads of the tools' columns.
pub const HEADS: &str =
    "TIME           STATE       LOCAL                 REMOTE                FLAGS REASON\n";

/// What happened to a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub serial: u64,
    /// Nanoseconds since the boot.
    pub time_ns: u64,
    pub kind: String,
    pub reason: String,
    pub state: String,
    pub flags: String,
    pub local: String,
    pub remote: String,
}

/// The events of the kernel's file; its columns are found by their heads.
pub fn parse(text: &str) -> Option<Vec<Event>> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next()?.split(' ').collect();
    lines.map(|line| event(&heads, line)).collect()
}

fn event(heads: &[&str], line: &str) -> Option<Event> {
    let fields: Vec<&str> = line.split(' ').collect();
    let field = |head: &str| {
        let at = heads.iter().position(|known| *known == head)?;
        fields.get(at).copied()
    };
    Some(Event {
        serial: field("SERIAL")?.parse().ok()?,
        time_ns: field("TIME")?.parse().ok()?,
        kind: field("KIND")?.into(),
        reason: field("REASON")?.into(),
        state: field("STATE")?.into(),
        flags: field("FLAGS")?.into(),
        local: field("LOCAL")?.into(),
        remote: field("REMOTE")?.into(),
    })
}

impl Event {
    /// Its line.
    pub fn line(&self) -> String {
        let (seconds, micros) = (
            self.time_ns / 1_000_000_000,
            self.time_ns / 1000 % 1_000_000,
        );
        let (state, flags, reason) = (&self.state, &self.flags, &self.reason);
        let (local, remote) = (&self.local, &self.remote);
        format!(
            "{seconds:7}.{micros:06} {state:<11} {local:<21} {remote:<21} {flags:<5} {reason}\n"
        )
    }
}
