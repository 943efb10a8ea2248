use yard_git::{Kind, hash};
use yard_objects::native::block_on;

use super::*;

const MIB: usize = 1 << 20;

/// Any object is there, and has so many bytes.
struct Sized(usize);

impl Source for Sized {
    async fn read(&self, wanted: &BTreeSet<ObjectId>) -> Result<Vec<(ObjectId, Arc<Object>)>, Refusal> {
        let object = Arc::new(Object { kind: Kind::Blob, data: vec![b'x'; self.0] });
        Ok(wanted.iter().map(|id| (*id, Arc::clone(&object))).collect())
    }
}

fn load(hand: &mut Hand, name: &[u8], bytes: usize) -> Result<(), Refusal> {
    block_on(hand.load(&Sized(bytes), BTreeSet::from([hash(Kind::Blob, name)])))
}

#[test]
fn hands_in_one_room_hold_no_more_together_than_one_may_alone() {
    let room = Room::default();
    let mut hands: Vec<Hand> = (0..6).map(|_| Hand::within(&room)).collect();
    let loaded: Vec<bool> = hands.iter_mut().map(|hand| load(hand, b"a", 10 * MIB).is_ok()).collect();
    assert_eq!(loaded, [true, true, true, false, false, false]);
    assert!(matches!(load(&mut hands[0], b"b", MIB), Err(Refusal::Overloaded { .. })));
    // Those that found no room give back what they had read, and the others go on.
    hands.truncate(3);
    load(&mut hands[0], b"c", MIB).unwrap();
    hands.clear();
    assert_eq!(room.0.get(), 0);
    let mut last = Hand::within(&room);
    load(&mut last, b"a", 31 * MIB).unwrap();
    assert!(matches!(load(&mut last, b"b", 2 * MIB), Err(Refusal::TooLarge { .. })));
}

#[test]
fn hands_of_different_events_do_not_see_each_other() {
    let (mut one, mut two) = (Hand::default(), Hand::within(&Room::default()));
    load(&mut one, b"a", 20 * MIB).unwrap();
    load(&mut two, b"a", 20 * MIB).unwrap();
}
