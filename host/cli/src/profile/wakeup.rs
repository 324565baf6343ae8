//! One wait as a paragraph: who slept, how long, who woke him, and how the kernel came to that.
//!
//! ```text
//!    46.012 ms  redis-server 12/12 in epoll_wait, woken by busybox 7/7; goes on on CPU 1
//!                 sched::wake_[k]
//!                 ipc::epoll::wait::wake_[k]
//!                 inet::tcp::input::deliver_[k]
//! ```
//!
//! The waker's stack is that of the kernel, innermost first.

use std::io::{self, Write};
use std::time::Duration;

use super::collector::{Named, WaitEnd};
use super::frame::Frame;
use super::kernel::MARK;

/// Writes it, unless it is no wait or shorter than `least`.
pub fn write(to: &mut dyn Write, named: &Named, least: Duration) -> io::Result<()> {
    let waited = Duration::from_micros(named.weight);
    let Some(end) = named.end.as_ref().filter(|_| waited >= least) else {
        return Ok(());
    };
    let sleeper = who(&named.thread, named.ids);
    let milliseconds = named.weight as f64 / 1000.0;
    write!(
        to,
        "{milliseconds:10.3} ms  {sleeper}{}",
        place(&named.frames)
    )?;
    match end {
        WaitEnd::Deadline => writeln!(to, ", until its deadline"),
        WaitEnd::Woken(waker) => {
            let cpu = named.cpu;
            writeln!(
                to,
                ", woken by {}; goes on on CPU {cpu}",
                who(&waker.thread, waker.ids)
            )?;
            let mut frames = waker.frames.iter().rev();
            frames.try_for_each(|frame| writeln!(to, "{:15}{}", "", frame.name))
        }
    }
}

fn who(thread: &str, (pid, tid): (u32, u32)) -> String {
    format!("{thread} {pid}/{tid}")
}

/// Where the program waits: its innermost function.
fn place(frames: &[Frame]) -> String {
    let own = frames
        .iter()
        .rev()
        .find(|frame| !frame.name.ends_with(MARK));
    own.map_or(String::new(), |frame| format!(" in {}", frame.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::wakers::Waker;

    fn named(end: Option<WaitEnd>) -> Named {
        Named {
            cpu: 1,
            cycles: 0,
            ids: (12, 13),
            thread: "redis-server".into(),
            frames: ["main", "epoll_wait", "ipc::epoll::wait_[k]"]
                .map(Frame::mark)
                .into(),
            weight: 46_012,
            end,
        }
    }

    fn text(named: &Named, least_ms: u64) -> String {
        let mut text = Vec::new();
        write(&mut text, named, Duration::from_millis(least_ms)).expect("a vector takes all");
        String::from_utf8(text).expect("names are text")
    }

    #[test]
    fn a_paragraph_names_sleeper_and_waker_and_how_the_kernel_came_to_wake() {
        let waker = Waker {
            thread: "busybox".into(),
            ids: (7, 7),
            frames: ["inet::input_[k]", "sched::wake_[k]"]
                .map(Frame::mark)
                .into(),
        };
        let expected = concat!(
            "    46.012 ms  redis-server 12/13 in epoll_wait, woken by busybox 7/7; goes on on CPU 1\n",
            "               sched::wake_[k]\n",
            "               inet::input_[k]\n",
        );
        assert_eq!(text(&named(Some(WaitEnd::Woken(waker))), 46), expected);
    }

    #[test]
    fn a_wait_that_nobody_ended_says_so() {
        let expected = "    46.012 ms  redis-server 12/13 in epoll_wait, until its deadline\n";
        assert_eq!(text(&named(Some(WaitEnd::Deadline)), 0), expected);
    }

    #[test]
    fn what_is_shorter_or_no_wait_is_left_out() {
        assert_eq!(text(&named(Some(WaitEnd::Deadline)), 47), "");
        assert_eq!(text(&named(None), 0), "");
    }
}
