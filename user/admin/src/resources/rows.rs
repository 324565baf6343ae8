//! The screen: a row for each resource, each of its three cells a sentence in numbers.

use super::figures::Figures;
use crate::prstat::count;

/// What to say where nobody counts.
const NONE: &str = "--";

/// A row: resource, utilisation, saturation, errors.
type Row = Vec<String>;

/// All rows, of what happened from `before` to `now`.
pub fn rows(before: &Figures, now: &Figures) -> Vec<Row> {
    let span = Span { before, now };
    let ports = now.members("port.");
    let (volumes, disks) = (now.members("volume."), now.members("disk."));
    let mut rows = vec![span.cpu(), span.memory()];
    rows.extend(span.kernel());
    rows.extend(ports.iter().map(|port| span.port(port)));
    rows.extend([span.tcp(), span.udp(), span.ip()]);
    rows.extend(volumes.iter().map(|volume| span.volume(volume)));
    rows.extend(disks.iter().map(|disk| span.disk(disk)));
    rows
}

struct Span<'a> {
    before: &'a Figures,
    now: &'a Figures,
}

impl Span<'_> {
    fn cpu(&self) -> Row {
        let used = self.sum(&["cpu.user", "cpu.nice", "cpu.system"]);
        let all = used + self.sum(&["cpu.idle"]);
        let count = self.now.get("cpu.count").unwrap_or(1);
        let waited_ns = self.now.latency_ns(self.before);
        let waiting = waited_ns.map(|waited_ns| {
            let threads = average(waited_ns, self.now.passed_ns(self.before));
            format!("{threads} threads wait")
        });
        row(
            "cpu",
            format!("{} of {count}", share(used, all)),
            waiting,
            None,
        )
    }

    /// How long the kernel kept a CPU from others; no row where it does not tell.
    fn kernel(&self) -> Option<Row> {
        let longest_us = self.now.get("kernel.longest_us")?;
        let longest = format!("{}.{:03} ms at most", longest_us / 1000, longest_us % 1000);
        let long = self.counted("kernel.long", "times over 1 ms");
        Some(row("kernel", longest, long, None))
    }

    fn memory(&self) -> Row {
        let total = self.now.get("mem.MemTotal").unwrap_or(0);
        let available = self.now.get("mem.MemAvailable").unwrap_or(0);
        let used = share(total.saturating_sub(available), total);
        row(
            "memory",
            format!("{used} of {} MiB", total / 1024),
            self.counted("vm.allocstall_normal", "waits"),
            self.counted("vm.oom_kill", "programs killed"),
        )
    }

    fn port(&self, port: &str) -> Row {
        let name = |what: &str| format!("port.{port}.{what}");
        let bytes = |what: &str| count(self.a_second(self.sum(&[&name(what)])));
        let (received, sent) = (bytes("in"), bytes("out"));
        let dropped = self.sum(&[&name("dropped_in"), &name("dropped_out")]);
        let bad = self.sum(&[&name("bad_in"), &name("bad_out")]);
        row(
            port,
            format!("{received}B in, {sent}B out /s"),
            Some(format!("{dropped} dropped")),
            Some(format!("{bad} bad")),
        )
    }

    fn tcp(&self) -> Row {
        let connections = self.now.get("Tcp.CurrEstab").unwrap_or(0);
        let opened = self.rate_of(self.sum(&["Tcp.ActiveOpens", "Tcp.PassiveOpens"]));
        let refused = self.sum(&["TcpExt.ListenDrops"]);
        let [again, resets, bad] =
            ["Tcp.RetransSegs", "Tcp.OutRsts", "Tcp.InErrs"].map(|name| self.sum(&[name]));
        row(
            "tcp",
            format!("{connections} open, {opened} more /s"),
            Some(format!("{refused} refused by full queues")),
            Some(format!("{again} sent again, {resets} reset, {bad} bad")),
        )
    }

    fn udp(&self) -> Row {
        let (received, sent) = (self.rate("Udp.InDatagrams"), self.rate("Udp.OutDatagrams"));
        row(
            "udp",
            format!("{received} in, {sent} out /s"),
            self.counted("Udp.InErrors", "dropped by full queues"),
            self.counted("Udp.NoPorts", "to nobody"),
        )
    }

    fn ip(&self) -> Row {
        let (received, sent) = (self.rate("Ip.InReceives"), self.rate("Ip.OutRequests"));
        let bad = self.sum(&["Ip.InHdrErrors", "Ip.InAddrErrors"]);
        let lost = self.sum(&["Ip.OutNoRoutes"]);
        row(
            "ip",
            format!("{received} in, {sent} out /s"),
            None,
            Some(format!("{bad} bad, {lost} without route")),
        )
    }

    fn volume(&self, volume: &str) -> Row {
        let name = |what: &str| format!("volume.{volume}.{what}");
        let passed_ns = self.now.passed_ns(self.before);
        let busy = share(self.sum(&[&name("BUSY")]), passed_ns);
        let requests = self.rate(&name("REQUESTS"));
        let under_way = average(self.sum(&[&name("WAITED")]), passed_ns);
        let full = self.sum(&[&name("FULL")]);
        row(
            volume,
            format!("{busy}, {requests} requests /s"),
            Some(format!("{under_way} under way, {full} found full")),
            self.counted(&name("FAILED"), "failed"),
        )
    }

    fn disk(&self, disk: &str) -> Row {
        let name = |what: &str| format!("disk.{disk}.{what}");
        let passed_ns = self.now.passed_ns(self.before);
        let busy = share(self.sum(&[&name("BUSY")]), passed_ns);
        let requests = self.rate(&name("REQUESTS"));
        let under_way = average(self.sum(&[&name("WAITED")]), passed_ns);
        let [failed, again, given_up] =
            ["FAILED", "RETRIED", "TIMED_OUT"].map(|what| self.sum(&[&name(what)]));
        row(
            disk,
            format!("{busy}, {requests} requests /s"),
            Some(format!("{under_way} under way")),
            Some(format!(
                "{failed} failed, {again} sent again, {given_up} lost"
            )),
        )
    }

    /// How much they grew together.
    fn sum(&self, names: &[&str]) -> u64 {
        let grown = names
            .iter()
            .filter_map(|name| self.now.grown(self.before, name));
        grown.fold(0, u64::saturating_add)
    }

    fn counted(&self, name: &str, what: &str) -> Option<String> {
        let count = self.now.grown(self.before, name)?;
        Some(format!("{count} {what}"))
    }

    fn rate(&self, name: &str) -> String {
        self.rate_of(self.sum(&[name]))
    }

    fn rate_of(&self, count: u64) -> String {
        self.a_second(count).to_string()
    }

    fn a_second(&self, count: u64) -> u64 {
        let nanos = u128::from(count) * 1_000_000_000;
        let passed_ns = u128::from(self.now.passed_ns(self.before));
        let rate = (nanos + passed_ns / 2) / passed_ns;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

fn row(name: &str, used: String, waits: Option<String>, errors: Option<String>) -> Row {
    let or_none = |cell: Option<String>| cell.unwrap_or_else(|| NONE.into());
    vec![name.into(), used, or_none(waits), or_none(errors)]
}

fn share(part: u64, whole: u64) -> String {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    format!("{}%", percent.min(100))
}

/// How many there were on the average, to a tenth.
fn average(sum_ns: u64, passed_ns: u64) -> String {
    let tenths = u128::from(sum_ns) * 10 / u128::from(passed_ns.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}
