//! What instructions are for.
//!
//! A class has the functions whose names begin with one of its prefixes; the longest prefix that
//! fits decides. Of functions inlined into one another the innermost that fits any prefix
//! decides, so that the language's own library counts for who uses it.

/// What an instruction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// From the card to the stack and back: rings, registers, interrupts.
    Driver,
    /// From a frame to a socket's queue.
    StackIn,
    /// From a socket to a frame.
    StackOut,
    /// What both ways use: packets' memory, locks, clocks, timers.
    Shared,
    /// Waking, waiting, switching, idling.
    Scheduler,
    /// From a packet to the program.
    CopyIn,
    /// From the program to a packet.
    CopyOut,
    /// Into the kernel and back: entry, dispatch, descriptors, sockets as files.
    Crossing,
    /// The program itself.
    Program,
    /// Functions that no rule names.
    Other,
    /// A look for frames by who has nothing else to do ([`LOOKS`]).
    Look,
}

/// By what a program with a card of its own looks for frames before it waits, and how these functions' names end.
const LOOKS: [&str; 2] = ["rt::look::look_until", "::has_received"];

impl Class {
    /// In the order of the table, which has looks below its total.
    pub const ALL: [Self; 10] = [
        Self::Driver,
        Self::StackIn,
        Self::StackOut,
        Self::Shared,
        Self::Scheduler,
        Self::CopyIn,
        Self::CopyOut,
        Self::Crossing,
        Self::Program,
        Self::Other,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver and interrupt",
            Self::StackIn => "network stack, in",
            Self::StackOut => "network stack, out",
            Self::Shared => "packets' memory, locks, timers",
            Self::Scheduler => "scheduler",
            Self::CopyIn => "copy, in",
            Self::CopyOut => "copy, out",
            Self::Crossing => "kernel crossing",
            Self::Program => "program",
            Self::Other => "other",
            Self::Look => "looks beside it, with nothing to do",
        }
    }

    /// Its name in a table of rules.
    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "driver" => Self::Driver,
            "in" => Self::StackIn,
            "out" => Self::StackOut,
            "shared" => Self::Shared,
            "scheduler" => Self::Scheduler,
            "copy-in" => Self::CopyIn,
            "copy-out" => Self::CopyOut,
            "crossing" => Self::Crossing,
            _ => return None,
        })
    }
}

/// The name of the look that an instruction of a program belongs to. What a kernel looks for before it halts is its work,
/// on each system.
pub fn look_of(functions: &[String]) -> Option<&str> {
    let outermost = functions.last()?.as_str();
    let is_look = LOOKS.iter().any(|end| outermost.ends_with(end));
    is_look.then_some(outermost)
}

/// Which class a function belongs to.
pub struct Rules(Vec<(&'static str, Class)>);

impl Rules {
    /// Reads lines of a class, a colon and its prefixes; `#` begins a comment.
    pub fn read(text: &'static str) -> Result<Self, String> {
        let mut rules = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            // A colon with a space: names have colons themselves.
            let (word, prefixes) = line.split_once(": ").ok_or(line)?;
            let class = Class::of_word(word).ok_or_else(|| format!("no class {word}"))?;
            rules.extend(prefixes.split_whitespace().map(|prefix| (prefix, class)));
        }
        Ok(Self(rules))
    }

    /// The class of an instruction by the names of its functions, innermost first, and the
    /// name that decided.
    pub fn class_of<'a>(&self, functions: &'a [String]) -> (Class, &'a str) {
        let Some(innermost) = functions.first() else {
            return (Class::Program, "");
        };
        let mut named = functions.iter();
        let decided = named.find_map(|name| Some((self.find(name)?, name.as_str())));
        decided.unwrap_or((Class::Other, innermost))
    }

    fn find(&self, name: &str) -> Option<Class> {
        let fitting = self.0.iter().filter(|(prefix, _)| name.starts_with(prefix));
        let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
        longest.map(|&(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_longest_prefix_decides() {
        let rules = Rules::read("in: udp_ # a reason\nout: udp_send\n").unwrap();
        let class_of = |name| rules.class_of(&names(&[name])).0;
        assert_eq!(class_of("udp_sendmsg"), Class::StackOut);
        assert_eq!(class_of("udp_rcv"), Class::StackIn);
        assert_eq!(class_of("tcp_ack"), Class::Other);
        assert_eq!(rules.class_of(&[]).0, Class::Program);
    }

    #[test]
    fn the_innermost_function_that_a_rule_names_decides() {
        let rules = Rules::read("in: a::\nout: b::\n").unwrap();
        let inlined = names(&["core::mem::swap", "b::send", "a::receive"]);
        assert_eq!(rules.class_of(&inlined), (Class::StackOut, "b::send"));
    }

    #[test]
    fn all_that_is_done_in_a_look_is_the_looks() {
        let look = names(&["rt::clock::Clock::now", "rt::look::look_until"]);
        assert_eq!(look_of(&look), Some("rt::look::look_until"));
        let port = names(&["<igb::pair::Pair<R> as hal::FramePort>::has_received"]);
        assert_eq!(look_of(&port), Some(port[0].as_str()));
        assert_eq!(look_of(&names(&["rt::card::Card::arm"])), None);
        assert_eq!(look_of(&[]), None);
    }

    #[test]
    fn the_tables_of_both_systems_can_be_read() {
        for table in [crate::echo::RULES_OF_LINUX, crate::echo::RULES_OF_SIETCH] {
            assert!(Rules::read(table).is_ok());
        }
    }
}
