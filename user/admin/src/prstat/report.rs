//! What happened between two snapshots, as lines.

use std::collections::{BTreeMap, HashMap};

use super::format::{count, percent};
use super::snapshot::{Snapshot, Thread};

const HEADS: &str = "   PID USERNAME USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG ";

/// A line: a thread, or a process with the number of its threads.
struct Line {
    sum: Thread,
    threads: u32,
}

/// What each thread or process did.
pub struct Report {
    lines: Vec<Line>,
    is_by_thread: bool,
    footer: String,
}

impl Report {
    /// What is in `now` and was not in `before`; with `pids` these processes only.
    pub fn between(before: &Snapshot, now: &Snapshot, is_by_thread: bool, pids: &[u32]) -> Self {
        let mut lines: BTreeMap<(u32, u32), Line> = BTreeMap::new();
        let mut processes: Vec<u32> = now.threads.iter().map(|thread| thread.pid).collect();
        processes.dedup();
        let is_wanted = |thread: &Thread| pids.is_empty() || pids.contains(&thread.pid);
        for done in grown(before, now).filter(is_wanted) {
            let key = (done.pid, if is_by_thread { done.tid } else { 0 });
            match lines.get_mut(&key) {
                Some(line) => line.add(&done),
                None => drop(lines.insert(key, Line::of(done))),
            }
        }
        let (processes, threads) = (processes.len(), now.threads.len());
        let loads = &now.loads;
        Self {
            lines: lines.into_values().collect(),
            is_by_thread,
            footer: format!(
                "Total: {processes} processes, {threads} lwps, load averages: {loads}\n"
            ),
        }
    }

    /// The busiest `most` lines between head and footer; `passwd` names the users.
    pub fn text(mut self, most: usize, passwd: &str) -> String {
        self.lines
            .sort_by_key(|line| std::cmp::Reverse(line.worked_per_million()));
        let what = match self.is_by_thread {
            true => "PROCESS/LWPID",
            false => "PROCESS/NLWP",
        };
        let mut text = format!("{HEADS}{what}\n");
        for line in self.lines.iter().take(most) {
            text += &line.text(self.is_by_thread, passwd);
        }
        text + &self.footer
    }
}

/// What each thread of `now` has done since `before`.
pub fn grown(before: &Snapshot, now: &Snapshot) -> impl Iterator<Item = Thread> {
    let old = before.threads.iter();
    let old: HashMap<_, _> = old.map(|thread| (thread.tid, thread)).collect();
    now.threads
        .iter()
        .map(move |thread| since(old.get(&thread.tid).copied(), thread))
}

/// What a thread has done since `before`; all of it if that was another one's number.
fn since(before: Option<&Thread>, now: &Thread) -> Thread {
    let mut done = now.clone();
    if let Some(before) = before.filter(|old| old.pid == now.pid && old.age_ns <= now.age_ns) {
        done.age_ns -= before.age_ns;
        subtract(&mut done.spent_ns, &before.spent_ns);
        subtract(&mut done.counts, &before.counts);
    }
    done
}

fn subtract(from: &mut [u64], what: &[u64]) {
    let pairs = from.iter_mut().zip(what);
    pairs.for_each(|(left, old)| *left = left.saturating_sub(*old));
}

fn add(to: &mut [u64], what: &[u64]) {
    let pairs = to.iter_mut().zip(what);
    pairs.for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

impl Line {
    fn of(sum: Thread) -> Self {
        Self { sum, threads: 1 }
    }

    fn add(&mut self, thread: &Thread) {
        self.threads += 1;
        self.sum.age_ns = self.sum.age_ns.saturating_add(thread.age_ns);
        add(&mut self.sum.spent_ns, &thread.spent_ns);
        add(&mut self.sum.counts, &thread.counts);
    }

    /// The share of its time that it had a CPU, as far as that is not for faults.
    fn worked_per_million(&self) -> u128 {
        let worked_ns: u128 = self.sum.spent_ns[..3].iter().copied().map(u128::from).sum();
        worked_ns * 1_000_000 / u128::from(self.sum.age_ns.max(1))
    }

    fn text(&self, is_by_thread: bool, passwd: &str) -> String {
        let Thread { pid, tid, name, .. } = &self.sum;
        let mut text = format!("{pid:6} {:<8.8}", user(self.sum.uid, passwd));
        for spent_ns in self.sum.spent_ns {
            text += &format!(" {:>3}", percent(spent_ns, self.sum.age_ns));
        }
        for number in self.sum.counts {
            text += &format!(" {:>3}", count(number));
        }
        let last = if is_by_thread { *tid } else { self.threads };
        text + &format!(" {name}/{last}\n")
    }
}

/// The name of a user, or its number.
fn user(uid: u32, passwd: &str) -> String {
    let number = uid.to_string();
    let mut lines = passwd.lines().map(|line| line.split(':'));
    let name = lines.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_string())
    });
    name.unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, age_ns: u64, spent_ns: [u64; 8]) -> Thread {
        Thread {
            pid: 7,
            tid,
            uid: 33,
            name: "web".into(),
            age_ns,
            spent_ns,
            counts: [1, 2, 2500, 0],
        }
    }

    fn snapshot(threads: Vec<Thread>) -> Snapshot {
        Snapshot {
            threads,
            loads: "1.00, 0.50, 0.25".into(),
        }
    }

    fn lines(report: Report) -> Vec<String> {
        let text = report.text(15, "root:x:0:0::/:\nwww-data:x:33:33::/:\n");
        text.lines().map(String::from).collect()
    }

    #[test]
    fn a_line_for_each_thread_tells_of_the_interval_alone_the_busiest_first() {
        let before = snapshot(vec![thread(7, 1000, [1000, 0, 0, 0, 0, 0, 0, 0])]);
        let now = snapshot(vec![
            thread(7, 2000, [1000, 0, 0, 0, 0, 0, 1000, 0]),
            thread(8, 1000, [500, 250, 0, 0, 0, 0, 5, 245]),
        ]);
        let lines = lines(Report::between(&before, &now, true, &[]));
        assert_eq!(
            lines,
            [
                "   PID USERNAME USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG PROCESS/LWPID",
                "     7 www-data  50  25 0.0 0.0 0.0 0.0 0.5  25   1   2  2K   0 web/8",
                "     7 www-data 0.0 0.0 0.0 0.0 0.0 0.0 100 0.0   0   0   0   0 web/7",
                "Total: 1 processes, 2 lwps, load averages: 1.00, 0.50, 0.25",
            ]
        );
    }

    #[test]
    fn a_line_for_each_process_is_the_mean_of_its_threads() {
        let now = snapshot(vec![
            thread(7, 1000, [1000, 0, 0, 0, 0, 0, 0, 0]),
            thread(8, 1000, [0, 0, 0, 0, 0, 1000, 0, 0]),
        ]);
        let lines = lines(Report::between(&Snapshot::default(), &now, false, &[7]));
        assert_eq!(
            lines[1],
            "     7 www-data  50 0.0 0.0 0.0 0.0  50 0.0 0.0   2   4  5K   0 web/2"
        );
    }

    #[test]
    fn a_number_that_another_thread_had_before_tells_of_the_new_one_alone() {
        let before = snapshot(vec![thread(7, 9000, [9000, 0, 0, 0, 0, 0, 0, 0])]);
        let now = snapshot(vec![thread(7, 10, [0, 10, 0, 0, 0, 0, 0, 0])]);
        let lines = lines(Report::between(&before, &now, true, &[]));
        assert!(
            lines[1].starts_with("     7 www-data 0.0 100 "),
            "{lines:?}"
        );
    }

    #[test]
    fn processes_that_were_not_asked_for_are_left_out() {
        let now = snapshot(vec![thread(7, 10, [10, 0, 0, 0, 0, 0, 0, 0])]);
        let lines = lines(Report::between(&Snapshot::default(), &now, true, &[8]));
        assert_eq!(lines.len(), 2);
    }
}
