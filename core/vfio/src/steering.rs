//! To which CPU a message of a device goes.
//!
//! The problem: a message that comes to a CPU on which its program does not wait stops whoever runs there, and
//! then a second CPU has to be called. Programs move, and of two programs with a device each, one may run where the
//! other one's messages come.
//!
//! The idea: a message goes where the threads that it wakes have been more often than not. To lead it elsewhere takes a
//! while, and a thread may be on another CPU for once, so they must have been there some times more
//! than they were not.

use base::CpuId;

/// Messages that must have woken threads of one other CPU, more than have not.
const LEAD: u32 = 16;

/// What is known of one message.
#[derive(Debug)]
pub struct Steering {
    goes_to: CpuId,
    /// Where threads have been woken, and how much more often than not.
    elsewhere: Option<(CpuId, u32)>,
}

impl Steering {
    /// Of a message that goes to `cpu`.
    pub const fn new(cpu: CpuId) -> Self {
        Self {
            goes_to: cpu,
            elsewhere: None,
        }
    }

    /// The CPU to which it goes.
    pub const fn goes_to(&self) -> CpuId {
        self.goes_to
    }

    /// A message came, and woke a thread on another CPU, or nobody there. Returns where messages are to go from now on
    /// if that is another CPU.
    pub fn note(&mut self, woken_on: Option<CpuId>) -> Option<CpuId> {
        let woken_on = woken_on.filter(|cpu| *cpu != self.goes_to);
        self.elsewhere = match (self.elsewhere, woken_on) {
            (Some((cpu, times)), Some(on)) if cpu == on => Some((cpu, times + 1)),
            (Some((cpu, times)), _) if times > 1 => Some((cpu, times - 1)),
            (_, on) => on.map(|cpu| (cpu, 1)),
        };
        let (cpu, _) = self.elsewhere.filter(|(_, times)| *times >= LEAD)?;
        *self = Self::new(cpu);
        Some(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: CpuId = CpuId(0);
    const THERE: CpuId = CpuId(1);

    /// After how many of these messages, over and over again, they go elsewhere, and where; `None` if never.
    fn moves_after(messages: &[Option<CpuId>]) -> Option<(usize, CpuId)> {
        let mut steering = Steering::new(HERE);
        let messages = messages.iter().cycle().take(1000);
        messages
            .zip(1..)
            .find_map(|(message, count)| Some((count, steering.note(*message)?)))
    }

    #[test]
    fn messages_follow_who_waits_elsewhere() {
        assert_eq!(moves_after(&[Some(THERE)]), Some((16, THERE)));
    }

    #[test]
    fn they_stay_with_who_is_here_half_of_the_time() {
        assert_eq!(moves_after(&[Some(THERE), None]), None);
        assert_eq!(moves_after(&[Some(HERE)]), None);
        assert_eq!(moves_after(&[None]), None);
    }

    #[test]
    fn they_follow_who_is_elsewhere_most_of_the_time() {
        let moved = moves_after(&[Some(THERE), Some(THERE), None]);
        assert!(moved.is_some_and(|(count, cpu)| count > 16 && cpu == THERE));
    }

    #[test]
    fn they_follow_nobody_who_is_everywhere() {
        assert_eq!(moves_after(&[Some(THERE), Some(CpuId(2))]), None);
    }

    #[test]
    fn where_they_go_now_is_here_from_then_on() {
        let mut steering = Steering::new(HERE);
        let moved = |steering: &mut Steering, cpu| (0..16).find_map(|_| steering.note(Some(cpu)));
        assert_eq!(moved(&mut steering, THERE), Some(THERE));
        assert_eq!(moved(&mut steering, THERE), None);
        assert_eq!(moved(&mut steering, HERE), Some(HERE));
    }
}
