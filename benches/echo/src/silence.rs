//! What an echo costs that comes after silence. A machine that rests has to be woken for it, and goes to rest again
//! behind it; nothing of that is shared with another echo. What a machine does in silence anyway is
//! counted before and taken off.

use std::thread;
use std::time::Duration;

use bench_pair::counter;
use bench_pair::echo::Echo;
use bench_pair::{System, dynamic_server, server};

use crate::beside::{self, CARD, CARD_FLAGS, VF, VF_FLAGS};
use crate::echo;
use crate::rings;
use bench_pair::names::Names;

/// Longer than anybody looks for more.
const SILENCE: Duration = Duration::from_millis(100);
const ECHOES: u32 = 100;
const PROGRAM: &str = "udp_echo";

/// A way to the network: its name, and the machine.
type Way = (&'static str, fn() -> Result<(Echo, Names), String>);

const WAYS: [Way; 6] = [
    ("Linux", || echo::boot(System::Linux, &server(PROGRAM)?)),
    ("Sietch", || echo::boot(System::Sietch, &server(PROGRAM)?)),
    ("`libsietch.so`, card", || {
        beside::echo(beside::OWN_CARD, &dynamic_server(PROGRAM)?)
    }),
    ("VF", || {
        beside::echo(beside::OWN_FUNCTION, &dynamic_server(PROGRAM)?)
    }),
    ("native, card", || rings::native_echo(&CARD_FLAGS, CARD)),
    ("VF", || rings::native_echo(&VF_FLAGS, VF)),
];

/// Counts all ways; a row beside each other.
pub fn table() -> Result<String, String> {
    let figures = WAYS.iter().map(|(name, boot)| {
        eprintln!("{name}, after silence");
        let (echo, _) = boot()?;
        of(&echo)
    });
    let figures: Vec<f64> = figures.collect::<Result<_, String>>()?;
    Ok(text(&figures))
}

fn text(figures: &[f64]) -> String {
    let names: String = WAYS.iter().map(|(name, _)| format!(" {name} |")).collect();
    let all: String = figures
        .iter()
        .map(|figure| format!(" {figure:.0} |"))
        .collect();
    let first = figures.first().copied().unwrap_or_default();
    let to_first = figures
        .iter()
        .map(|figure| format!(" {:.3} |", figure / first));
    format!(
        "One after each {} ms of silence:\n\n| instructions per echo |{names}\n|---|{}\n\
        | **total** |{all}\n| to the first |{}\n\n",
        SILENCE.as_millis(),
        "---:|".repeat(WAYS.len()),
        to_first.collect::<String>()
    )
}

/// Instructions per echo.
fn of(echo: &Echo) -> Result<f64, String> {
    let each = |act: &dyn Fn() -> Result<(), String>| {
        let before = counter::read()?;
        for _ in 0..ECHOES {
            thread::sleep(SILENCE);
            act()?;
        }
        Ok::<_, String>(counter::read()?.since(&before).total() as f64)
    };
    let one = || echo::exchange(&echo.socket, 1, 1);
    one()?;
    let silent = each(&|| Ok(()))?;
    Ok((each(&one)? - silent) / f64::from(ECHOES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_column() {
        let text = text(&[200.0, 100.0, 80.0, 60.0, 40.0, 20.0]);
        assert!(text.contains("| **total** | 200 | 100 | 80 | 60 | 40 | 20 |"));
        assert!(text.contains("| 1.000 | 0.500 | 0.400 | 0.300 | 0.200 | 0.100 |"));
        let pipes = |line: &str| line.matches('|').count();
        assert!(text.lines().skip(2).take(4).all(|line| pipes(line) == 8));
    }
}
