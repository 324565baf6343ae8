//! The tables, and the page `docs/bench-echo.md`.

use bench_pair::{Kernel, System, page};

use crate::cards::{COMMANDS, Card};
use crate::classes::Class;
use crate::echo::{Echoes, Functions, WINDOWS};

const PAGE: &str = "docs/bench-echo.md";

/// Each class with each window, both systems beside each other.
pub fn echoes(counts: &[Echoes]) -> String {
    let systems = [System::Linux, System::Sietch];
    beside(["Linux", "Sietch"], |index, window| {
        let is_it =
            |echoes: &&Echoes| (echoes.system, echoes.window) == (systems[index], WINDOWS[window]);
        counts.iter().find(is_it).map(|echoes| &echoes.functions)
    })
}

/// The same of several of anything, by the index of which one and of the window; the first is what
/// the others are compared with.
pub fn beside<'a, const N: usize>(
    names: [&str; N],
    of: impl Fn(usize, usize) -> Option<&'a Functions>,
) -> String {
    let mut text = String::from("| instructions per echo |");
    for window in WINDOWS {
        for (which, name) in names.iter().enumerate() {
            text += &match which {
                0 => format!(" {name}, window {window} |"),
                _ => format!(" {name} | ratio |"),
            };
        }
    }
    text += "\n|---|";
    text += &"---:|".repeat(WINDOWS.len() * (2 * N - 1));
    text += "\n";
    for class in Class::ALL {
        text += &row::<N>(class.name(), &of, |its| its == class);
    }
    text + &row::<N>("**total**", &of, |its| its != Class::Look)
}

fn row<'a, const N: usize>(
    name: &str,
    of: &impl Fn(usize, usize) -> Option<&'a Functions>,
    is_meant: impl Fn(Class) -> bool,
) -> String {
    let mut text = format!("| {name} |");
    for window in 0..WINDOWS.len() {
        let sum = |which| {
            let functions = of(which, window).into_iter().flatten();
            let meant = functions.filter(|((class, _), _)| is_meant(*class));
            meant.fold(0.0, |sum, (_, count)| sum + count)
        };
        let first = sum(0);
        text += &format!(" {first:.0} |");
        for other in (1..N).map(sum) {
            text += &format!(" {other:.0} | {} |", ratio(other, first));
        }
    }
    text + "\n"
}

fn ratio(figure: f64, to: f64) -> String {
    match to >= 1.0 {
        true => format!("{:.2}", figure / to),
        false => "–".into(),
    }
}

/// Each card's instructions per request.
pub fn cards(cards: &[Card]) -> String {
    let mut text = String::from("| instructions per request |");
    for command in COMMANDS {
        text += &format!(" {command} | to virtio |");
    }
    text += "\n|---|";
    text += &"---:|---:|".repeat(COMMANDS.len());
    text += "\n";
    for card in cards {
        text += &format!("| {} |", card.name);
        for (index, figure) in card.per_request.iter().enumerate() {
            let first = cards.first().map_or(0.0, |first| first.per_request[index]);
            text += &format!(" {figure:.0} | {} |", ratio(*figure, first));
        }
        text += "\n";
    }
    text
}

/// Writes the page.
pub fn write(echoes: &str, cards: &str) -> Result<(), String> {
    let text = format!(
        "# Where the instructions of a packet go\n\n\
        `cargo run --release -p bench-echo` wrote this page on {date}. A plugin of QEMU counted how\n\
        often each instruction of the guest was executed (`benches/echo/plugin/count.c`) while a client\n\
        on the host exchanged datagrams of 64 bytes with the same `udp_echo`, as many at a time as the\n\
        window says. The function that an instruction belongs to names its class: `benches/echo/classes`\n\
        has the rules for both systems, `bench-echo --functions` lists the functions. Both had one CPU,\n\
        512 MiB and virtio-net on a tap interface; Linux ran with `mitigations=off`, which costs it\n\
        least. A string instruction counts once. What happens now and then, such as a tick, is in it.\n\n\
        - {qemu}\n- Linux: {linux}\n\n{echoes}\n\
        With a window of 1 nothing can be done in batches: each echo has an interrupt, a wake-up, an\n\
        idle loop and a notification of its own.\n\n\
        ## Cards\n\n\
        Redis on Sietch behind each card, `redis-benchmark -c 50` on the host: all instructions of the\n\
        guest, those of Redis included.\n\n{cards}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
    );
    page::write(PAGE, &text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn classes_stand_beside_each_other_and_the_total_beneath() {
        let echoes = |system, count| Echoes {
            system,
            window: 64,
            functions: HashMap::from([
                ((Class::StackIn, "a".into()), count),
                ((Class::Program, String::new()), 10.0),
            ]),
        };
        let text = super::echoes(&[echoes(System::Linux, 90.0), echoes(System::Sietch, 40.0)]);
        assert!(
            text.contains("| network stack, in | 90 | 40 | 0.44 |"),
            "{text}"
        );
        assert!(text.contains("| **total** | 100 | 50 | 0.50 |"), "{text}");
        assert!(text.contains("| scheduler | 0 | 0 | – |"), "{text}");
    }

    #[test]
    fn cards_are_compared_with_the_first() {
        let card = |name, set| Card {
            name,
            per_request: vec![set, 8.0],
        };
        let text = super::cards(&[card("virtio", 10.0), card("igb", 13.0)]);
        assert!(text.contains("| igb | 13 | 1.30 | 8 | 1.00 |"), "{text}");
    }
}
