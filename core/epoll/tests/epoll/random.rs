//! Long histories of watches and changes, beside readiness that is computed anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::world::{File, World};
use epoll::{Event, Events, Refusal, Set, Trigger, Watch};
use models::{Plain, Random, for_each_seed};

type Watched = File<Plain>;

const FILES: usize = 6;
const INTERESTS: [Events; 3] = [Events::IN, Events::OUT, Events::READABLE];
const TRIGGERS: [Trigger; 4] = [
    Trigger::empty(),
    Trigger::EDGE,
    Trigger::ONESHOT,
    Trigger::EDGE.union(Trigger::ONESHOT),
];

/// What is known of a watch.
#[derive(Clone, Copy, Debug)]
struct Known {
    watch: Watch,
    /// It was re-armed, or something changed, since the last report.
    is_fresh: bool,
    is_silent: bool,
}

struct Run {
    set: World<Plain>,
    files: Vec<Arc<Watched>>,
    ready: [Events; FILES],
    known: BTreeMap<usize, Known>,
    random: Random,
    next: u64,
}

impl Run {
    fn new(random: Random) -> Self {
        Self {
            set: Set::new(),
            files: (0..FILES).map(|_| File::new()).collect(),
            ready: [Events::empty(); FILES],
            known: BTreeMap::new(),
            random,
            next: 0,
        }
    }

    fn watch(&mut self) -> Watch {
        self.next += 1;
        Watch {
            interest: INTERESTS[self.random.below(INTERESTS.len())],
            trigger: TRIGGERS[self.random.below(TRIGGERS.len())],
            data: self.next,
        }
    }

    fn step(&mut self) {
        let file = self.random.below(FILES);
        match self.random.below(10) {
            0..=1 => self.add(file),
            2 => self.modify(file),
            3 => self.remove(file),
            4..=6 => self.change(file),
            7 => self.look(),
            _ => self.collect(),
        }
    }

    fn add(&mut self, file: usize) {
        let watch = self.watch();
        let added = self.set.add(file as u32, &self.files[file], watch);
        if self.known.contains_key(&file) {
            assert_eq!(added, Err(Refusal::Exists));
            return;
        }
        assert_eq!(added, Ok(()));
        self.know(file, watch);
    }

    fn know(&mut self, file: usize, watch: Watch) {
        let known = Known {
            watch,
            is_fresh: true,
            is_silent: false,
        };
        self.known.insert(file, known);
    }

    fn modify(&mut self, file: usize) {
        let watch = self.watch();
        let modified = self.set.modify(file as u32, &self.files[file], watch);
        if !self.known.contains_key(&file) {
            assert_eq!(modified, Err(Refusal::NotFound));
            return;
        }
        assert_eq!(modified, Ok(()));
        self.know(file, watch);
    }

    fn remove(&mut self, file: usize) {
        let removed = self.set.remove(file as u32, &self.files[file]);
        match self.known.remove(&file) {
            None => assert_eq!(removed, Err(Refusal::NotFound)),
            Some(_) => assert_eq!(removed, Ok(())),
        }
    }

    fn change(&mut self, file: usize) {
        const STATES: [Events; 5] = [
            Events::empty(),
            Events::IN,
            Events::OUT,
            Events::READABLE.union(Events::OUT),
            Events::HUP,
        ];
        let events = STATES[self.random.below(STATES.len())];
        self.ready[file] = events;
        self.files[file].set_ready(events);
        self.files[file].notify(events);
        if let Some(known) = self.known.get_mut(&file)
            && events.intersects(known.watch.interest | Events::ALWAYS)
        {
            known.is_fresh = true;
        }
    }

    /// What must be reported now.
    fn due(&self) -> BTreeMap<usize, Event> {
        let due = |(file, known): (&usize, &Known)| {
            let interest = known.watch.interest | Events::ALWAYS;
            let events = self.ready[*file] & interest;
            let is_edge = known.watch.trigger.contains(Trigger::EDGE);
            let is_due = !known.is_silent && (known.is_fresh || !is_edge);
            let data = known.watch.data;
            (is_due && !events.is_empty()).then_some((*file, Event { events, data }))
        };
        self.known.iter().filter_map(due).collect()
    }

    /// Asks as poll(2) does, which changes nothing.
    fn look(&mut self) {
        let due = self.due();
        assert_eq!(self.set.has_ready(), !due.is_empty());
        // An edge that is over when somebody looks is none any more.
        self.forget_stale_edges();
    }

    /// A change that is no longer true when it is looked at is never reported.
    fn forget_stale_edges(&mut self) {
        if self.set.may_be_ready() {
            return;
        }
        for known in self.known.values_mut() {
            known.is_fresh = false;
        }
    }

    fn collect(&mut self) {
        let limit = 1 + self.random.below(FILES + 2);
        let due = self.due();
        let mut given = Vec::new();
        let fails_at = self.random.below(4 * FILES);
        let outcome = self.set.collect(limit, |event| {
            if given.len() == fails_at {
                return Err(());
            }
            given.push(event);
            Ok(())
        });
        match outcome {
            Ok(count) => assert_eq!(count, given.len()),
            Err(()) => assert_eq!(given.len(), fails_at),
        }
        if outcome.is_ok() {
            assert_eq!(given.len(), due.len().min(limit), "{due:?} {given:?}");
        }
        for event in &given {
            let (file, expected) = due
                .iter()
                .find(|(_, due)| due.data == event.data)
                .expect("it is due");
            assert_eq!(event, expected);
            let known = self.known.get_mut(file).expect("it is watched");
            known.is_fresh = false;
            known.is_silent |= known.watch.trigger.contains(Trigger::ONESHOT);
        }
        self.forget_stale_edges();
    }
}

#[test]
fn random_histories_report_what_is_true_and_due() {
    for_each_seed(300, |_, random| {
        let mut run = Run::new(random);
        for _ in 0..600 {
            run.step();
        }
    });
}
