//! Table 1 of Arrakis on this system: an echo by sockets of Linux and of Sietch, by sockets whose network is
//! the program's (`libsietch.so`), and by native calls (`sietch-io`), on a card of the program's own and on a
//! virtual function; and a request to Redis by the same ways. Writes `docs/bench-bypass.md`.

use bench_pair::{Kernel, System, counter, page};
use qemu::namespace::MACHINE;

use crate::beside;
use crate::calls;
use crate::cards::{self, COMMANDS};
use crate::classes::Class;
use crate::echo::{self, Functions, WINDOWS};
use crate::rings;
use crate::silence;
use crate::uring;

const PAGE: &str = "docs/bench-bypass.md";

/// A way to the network, and instructions per echo with each window.
type Way = (&'static str, Vec<Functions>);

/// Counts, and writes the page; its tables.
pub fn write() -> Result<String, String> {
    let ways = ways()?;
    let echoes = WINDOWS.iter().enumerate().map(|(index, window)| {
        let columns: Vec<_> = ways
            .iter()
            .map(|(name, all)| (*name, &all[index]))
            .collect();
        format!("With {window} under way:\n\n{}\n", table(&columns))
    });
    let echoes: String = echoes.collect();
    let echoes = echoes + &silence::table()?;
    let rings = uring::count(false)?;
    let calls = calls::count()?;
    let requests = requests()?;
    page::write(PAGE, &text([&echoes, &rings, &calls, &requests]))?;
    Ok(echoes + &rings + &calls + &requests)
}

fn ways() -> Result<Vec<Way>, String> {
    let systems = echo::count(&System::BOTH)?;
    let of = |system| {
        let own = systems.iter().filter(|echoes| echoes.system == system);
        own.map(|echoes| echoes.functions.clone()).collect()
    };
    let mut ways = vec![("Linux", of(System::Linux)), ("Sietch", of(System::Sietch))];
    for (name, row) in [
        ("`libsietch.so`, card", beside::OWN_CARD),
        ("VF", beside::OWN_FUNCTION),
    ] {
        let figures = beside::echoes(row)?;
        ways.push((
            name,
            figures
                .into_iter()
                .map(|(_, functions)| functions)
                .collect(),
        ));
    }
    let [card, function] = rings::natives()?;
    ways.extend([("native, card", card), ("VF", function)]);
    Ok(ways)
}

/// Each class, the total, and what that is of the first column's; beneath, what looks took.
pub fn table(columns: &[(&str, &Functions)]) -> String {
    let names = columns.iter().map(|(name, _)| format!(" {name} |"));
    let mut text = format!(
        "| instructions per echo |{}\n|---|",
        names.collect::<String>()
    );
    text += &"---:|".repeat(columns.len());
    text += "\n";
    for class in Class::ALL {
        let sums = columns.iter().map(|(_, functions)| {
            let own = functions.iter().filter(|((its, _), _)| *its == class);
            format!(" {:.0} |", own.map(|(_, count)| count).sum::<f64>())
        });
        text += &format!("| {} |{}\n", class.name(), sums.collect::<String>());
    }
    let totals: Vec<f64> = columns.iter().map(|(_, its)| echo::work(its)).collect();
    let first = totals.first().copied().unwrap_or_default();
    let all: String = totals
        .iter()
        .map(|total| format!(" {total:.0} |"))
        .collect();
    let to_first = totals
        .iter()
        .map(|total| format!(" {:.3} |", total / first));
    let looks = columns.iter().map(|(_, functions)| echo::looks(functions));
    let looks: String = looks.map(|count| format!(" {count:.0} |")).collect();
    text + &format!(
        "| **total** |{all}\n| to the first |{}\n| {} |{looks}\n",
        to_first.collect::<String>(),
        Class::Look.name(),
    )
}

/// Redis by each way, its own instructions included.
fn requests() -> Result<String, String> {
    let mut rows = vec![("Linux", of_linux()?)];
    for (name, row) in [
        ("Sietch", beside::PLAIN),
        ("`libsietch.so`, a card of its own", beside::OWN_CARD),
        ("`libsietch.so`, a virtual function", beside::OWN_FUNCTION),
    ] {
        let figures = beside::requests(row)?;
        rows.push((
            name,
            figures.iter().map(|(_, its)| echo::work(its)).collect(),
        ));
    }
    let mut text = String::from("| instructions per request |");
    for command in COMMANDS {
        text += &format!(" {command} | to Linux |");
    }
    text += "\n|---|---:|---:|---:|---:|\n";
    let first = rows[0].1.clone();
    for (name, figures) in rows {
        text += &format!("| {name} |");
        for (figure, first) in figures.iter().zip(&first) {
            text += &format!(" {figure:.0} | {:.3} |", figure / first);
        }
        text += "\n";
    }
    Ok(text)
}

fn of_linux() -> Result<Vec<f64>, String> {
    eprintln!("Redis on Linux");
    let args = [&["-m", "512M"], &cards::SERVER[..]].concat();
    let mut guest = counter::boot(System::Linux, &args)?;
    guest.wait_for_answer(cards::PORT, b"PING\r\n")?;
    let of_command = |command| {
        let counts = cards::under_load(MACHINE, command)?;
        Ok(counts.total() as f64 / f64::from(cards::REQUESTS))
    };
    COMMANDS.into_iter().map(of_command).collect()
}

fn text([echoes, rings, calls, requests]: [&str; 4]) -> String {
    format!(
        "# What an echo costs whose network is the program's\n\n\
        `cargo run --release -p bench-echo -- --own` wrote this page on {date}: Table 1 of \"Arrakis: The Operating\n\
        System is the Control Plane\" (OSDI 2014) on this system, in all instructions of the machine for a UDP echo\n\
        of 64 bytes, one CPU. [bench-echo.md](bench-echo.md) says how they are counted and what the rows mean. Linux\n\
        and Sietch are sockets over virtio-net; then come unmodified programs behind [`libsietch.so`](bypass.md), and\n\
        native calls of [`sietch-io`](libos.md), each on a virtio-net of the program's own and on a virtual function\n\
        (VF) of the 82576. What stands there under *kernel crossing* is the loop around the stack, and calls that wait: `--calls`\n\
        counts them. A program with a card of its own looks for frames for a while before it waits, under load (\"Looks\" in\n\
        [bypass.md](bypass.md)): these instructions are the more the slower the client is, and stand below the totals.\n\n\
        - {qemu}\n- Linux: {linux}, `mitigations=off`\n\n{echoes}\n\
        Arrakis has 0.43 for sockets and 0.11 for native calls, in time and to Linux 3.8. What an emulated card\n\
        itself does is not among the guest's instructions, nor what a register costs: under a hypervisor each access\n\
        to one is an exit. A turn, which serves as many datagrams as there are, has two.\n\n\
        ## io_uring\n\n\
        The same echo by a ring (`benches/pair/servers/uring_udp_echo.c`, by Debian's liburing): one receive of many\n\
        shots into lent buffers, and the ring entered once for all that has come. Behind the library a ring is served\n\
        in the program (\"io_uring\" in [bypass.md](bypass.md)); system calls are counted where the kernel is entered.\n\n\
        {rings}\
        ## System calls\n\n\
        `cargo run --release -p bench-echo -- --calls` counts these alone. Each way into the kernel is counted at its first\n\
        instruction. A *wait* begins when all that came was answered and the card is armed; before it, under load, is a *look*\n\
        at the card's memory, which is no call and often a wait less (`user/rt/src/arm_poll.rs`); *the\n\
        library's thread* looks once in 16 ms, or 64 under load, whether frames lie unseen (`user/preload/src/keeper.rs`); *others* would be\n\
        made while there is something to do.\n\n\
        {calls}\n\
        ## Redis\n\n\
        `redis-benchmark -c 50` on the host, instructions of Redis included, and looks not:\n\n{requests}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_compared_with_the_first_column() {
        let functions = |count| Functions::from([((Class::StackIn, "a".to_string()), count)]);
        let (linux, ours) = (functions(200.0), functions(50.0));
        let text = table(&[("Linux", &linux), ("ours", &ours)]);
        assert!(text.contains("| network stack, in | 200 | 50 |"), "{text}");
        assert!(text.contains("| to the first | 1.000 | 0.250 |"), "{text}");
    }

    #[test]
    fn looks_stand_beneath_the_total() {
        let work = ((Class::StackIn, "a".to_string()), 50.0);
        let functions = Functions::from([work, ((Class::Look, "b".to_string()), 7.0)]);
        let text = table(&[("ours", &functions)]);
        assert!(text.contains("| **total** | 50 |"), "{text}");
        assert!(
            text.ends_with("| looks beside it, with nothing to do | 7 |\n"),
            "{text}"
        );
    }
}
