use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Barrier;

use keywright_ckks::{CkksLiteral, CkksParameters};
use keywright_pool::{FileProblem, PoolError, PoolFile, WhenEmpty, ZeroKey};
use keywright_rlwe::{SecretKey, SeededRlweCiphertext};
use keywright_wire::TemporaryFile;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::fixture::{Folder, keys, options, parameters, pool, rng};

fn zeros(key: &SecretKey, count: usize) -> Vec<SeededRlweCiphertext> {
    let mut rng = rng(5);
    (0..count).map(|_| ZeroKey::encrypt_zero(key, 1, &mut rng).unwrap()).collect()
}

fn open(folder: &Folder, key: &SecretKey) -> Result<PoolFile, PoolError> {
    PoolFile::open(&folder.file(4), key, 1, rng(6))
}

fn problem<T: std::fmt::Debug>(result: Result<T, PoolError>) -> FileProblem {
    match result.unwrap_err() {
        PoolError::File { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

/// The one file of the register.
fn register(folder: &Folder) -> std::path::PathBuf {
    fs::read_dir(folder.0.join("register")).unwrap().next().unwrap().unwrap().path()
}

/// Overwrites a file in place: its file number stays.
fn restore(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    fs::File::options().write(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn entries_come_back_once_and_in_order_through_the_ring() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let entries = zeros(&secret, 11);
    let mut file = open(&folder, &secret).unwrap();
    let mut taken = Vec::new();
    assert_eq!(file.store(&*secret, &entries[..6]).unwrap(), 4);
    for k in 4..11 {
        taken.extend(file.take(&*secret, 1).unwrap());
        // Another holder sees the same state.
        let mut other = open(&folder, &secret).unwrap();
        assert_eq!(other.len().unwrap(), 3);
        assert_eq!(other.store(&*secret, &entries[k..=k]).unwrap(), 1);
    }
    drop(file);
    taken.extend(open(&folder, &secret).unwrap().take(&*secret, 99).unwrap());
    assert!(open(&folder, &secret).unwrap().is_empty().unwrap());
    let words = |zeros: &[SeededRlweCiphertext]| {
        zeros.iter().map(|zero| (zero.seed, zero.c0.words().to_vec())).collect::<Vec<_>>()
    };
    assert!(words(&taken) == words(&entries));
}

#[test]
fn what_was_taken_is_erased() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let mut file = open(&folder, &secret).unwrap();
    file.store(&*secret, &zeros(&secret, 4)).unwrap();
    file.take(&*secret, 4).unwrap();
    let bytes = fs::read(folder.0.join("entries.pool")).unwrap();
    assert!(bytes[4096..].iter().all(|&byte| byte == 0));
}

#[test]
fn entries_do_not_lie_in_the_clear() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let entries = zeros(&secret, 1);
    open(&folder, &secret).unwrap().store(&*secret, &entries).unwrap();
    let bytes = fs::read(folder.0.join("entries.pool")).unwrap();
    assert!(!bytes.windows(32).any(|window| window == entries[0].seed.0));
    #[cfg(unix)]
    for path in [folder.0.join("entries.pool"), register(&folder)] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn other_keys_and_parameters_are_refused() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, public) = keys(&parameters);
    drop(open(&folder, &secret).unwrap());

    let mut options = folder.file(4);
    options.key = Zeroizing::new([8; 32]);
    assert_eq!(problem(PoolFile::open(&options, &*secret, 1, rng(6))), FileProblem::Key);

    let other = SecretKey::sample(parameters.rlwe(), &mut rng(7)).unwrap();
    assert_eq!(problem(open(&folder, &other)), FileProblem::ForeignKey);
    let options = folder.file(4);
    for refusal in [
        problem(PoolFile::open(&options, &*public, 1, rng(6))),
        problem(PoolFile::open(&options, &*secret, 0, rng(6))),
    ] {
        assert!(matches!(refusal, FileProblem::ForeignEntries { found: 1, .. }), "{refusal}");
    }

    let literal = CkksLiteral::from_bits(10, &[50, 41], &[50], 36.0).unwrap().insecure();
    let (foreign, _) = keys(&CkksParameters::new(literal).unwrap());
    let refusal = problem(PoolFile::open(&options, &*foreign, 1, rng(6)));
    assert!(matches!(refusal, FileProblem::ForeignParameters { .. }));

    for capacity in [0, u64::MAX] {
        let options = folder.file(capacity);
        assert!(matches!(PoolFile::open(&options, &*secret, 1, rng(6)), Err(PoolError::Range { .. })));
    }
}

#[test]
fn damage_is_found() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let path = folder.0.join("entries.pool");
    open(&folder, &secret).unwrap().store(&*secret, &zeros(&secret, 4)).unwrap();
    let whole = fs::read(&path).unwrap();
    let slot = (whole.len() - 4096) / 4;

    for length in [0, 7, 100, 4096, whole.len() - 1] {
        fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        let refusal = problem(open(&folder, &secret));
        assert!(matches!(refusal, FileProblem::Length { .. }), "{length}: {refusal}");
        restore(&path, &whole);
    }
    restore(&path, &[&whole[..], &[0]].concat());
    assert!(matches!(problem(open(&folder, &secret)), FileProblem::Length { .. }));
    fs::File::options().write(true).open(&path).unwrap().set_len(whole.len() as u64).unwrap();

    // Every byte of the header, then bytes of the slots: the seal, the first and the last byte.
    for at in 0..116 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        restore(&path, &bytes);
        let refusal = problem(open(&folder, &secret));
        assert!(matches!(refusal, FileProblem::Foreign | FileProblem::Key), "byte {at}: {refusal}");
    }
    for (serial, at) in [(0, 4096), (1, 4096 + slot + 30), (2, 4096 + 2 * slot + 40), (3, whole.len() - 1)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        restore(&path, &bytes);
        let refusal = problem(open(&folder, &secret).unwrap().take(&*secret, 1));
        assert_eq!(refusal, FileProblem::Tampered { serial, others: 0 });
    }
    assert!(open(&folder, &secret).unwrap().is_empty().unwrap());

    let register = register(&folder);
    let length = fs::metadata(&register).unwrap().len() as usize;
    restore(&register, &vec![0xFF; length]);
    assert!(matches!(problem(open(&folder, &secret)), FileProblem::Register { .. }));
}

/// The bytes of both files for fixed randomness, unchanged since entries carry the identity of the key.
#[test]
fn the_format_is_as_it_was() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let mut file = open(&folder, &secret).unwrap();
    file.store(&*secret, &zeros(&secret, 1)).unwrap();
    let data = fs::read(folder.0.join("entries.pool")).unwrap();
    let mut record = fs::read(register(&folder)).unwrap();
    assert_eq!(record.len(), 4096 + 72);
    // The file number and its authentication differ between files; the rest of the newer record is fixed.
    let number: [u8; 8] = record[8..16].try_into().unwrap();
    assert_ne!(u64::from_le_bytes(number), 0);
    record.truncate(32);
    record.drain(8..16);
    let digest = |bytes: &[u8]| -> String {
        Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!((digest(&data), digest(&record)), ("acf68450e47726a4".into(), "53afea624a503a0b".into()));
}

#[test]
fn a_torn_record_leaves_the_one_before() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let mut file = open(&folder, &secret).unwrap();
    file.store(&*secret, &zeros(&secret, 4)).unwrap();
    drop(file);
    // Records 1 and 2 are written, 2 at the start. A torn record 3 destroys only record 1.
    let register = register(&folder);
    let mut bytes = fs::read(&register).unwrap();
    bytes[4096..].fill(0xAB);
    restore(&register, &bytes);
    let mut file = open(&folder, &secret).unwrap();
    assert_eq!(file.len().unwrap(), 4);
    assert_eq!(file.take(&*secret, 4).unwrap().len(), 4);
}

#[test]
fn a_copy_is_not_used() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    open(&folder, &secret).unwrap().store(&*secret, &zeros(&secret, 4)).unwrap();

    // Next to the original, with the same register.
    let mut beside = folder.file(4);
    beside.path = folder.0.join("copy.pool");
    fs::copy(folder.0.join("entries.pool"), &beside.path).unwrap();
    assert!(matches!(problem(PoolFile::open(&beside, &*secret, 1, rng(6))), FileProblem::Copied { .. }));

    // Elsewhere, without the register and with a copy of it.
    let elsewhere = Folder::new();
    fs::create_dir(elsewhere.0.join("register")).unwrap();
    fs::copy(folder.0.join("entries.pool"), elsewhere.0.join("entries.pool")).unwrap();
    assert!(matches!(problem(open(&elsewhere, &secret)), FileProblem::Unregistered { .. }));
    let record = register(&folder);
    fs::copy(&record, elsewhere.0.join("register").join(record.file_name().unwrap())).unwrap();
    assert!(matches!(problem(open(&elsewhere, &secret)), FileProblem::Copied { .. }));

    // The original still works, and a moved file is the original.
    let moved = folder.0.join("moved.pool");
    fs::rename(folder.0.join("entries.pool"), &moved).unwrap();
    beside.path = moved;
    assert_eq!(PoolFile::open(&beside, &*secret, 1, rng(6)).unwrap().len().unwrap(), 4);
}

#[test]
fn an_older_state_of_either_file_gives_nothing_twice() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let (path, mut seen) = (folder.0.join("entries.pool"), HashSet::new());
    let mut file = open(&folder, &secret).unwrap();
    file.store(&*secret, &zeros(&secret, 4)).unwrap();
    let (old_data, old_register) = (fs::read(&path).unwrap(), fs::read(register(&folder)).unwrap());
    seen.extend(file.take(&*secret, 2).unwrap().into_iter().map(|zero| zero.seed));

    // The register: its entries 0 and 1 are erased.
    let new_register = fs::read(register(&folder)).unwrap();
    restore(&register(&folder), &old_register);
    assert_eq!(problem(file.take(&*secret, 1)), FileProblem::Tampered { serial: 0, others: 0 });
    restore(&register(&folder), &new_register);

    // The data file: entries 0 and 1 are present again, and no register lists them; the others were unused.
    restore(&path, &old_data);
    let rest = file.take(&*secret, 4).unwrap();
    assert_eq!(rest.len(), 2);
    assert!(rest.into_iter().all(|zero| seen.insert(zero.seed)));
    // Slots that were rewritten do not accept their old content.
    file.store(&*secret, &zeros(&secret, 2)).unwrap();
    restore(&path, &old_data);
    assert_eq!(problem(file.take(&*secret, 1)), FileProblem::Tampered { serial: 4, others: 0 });
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The states in which a kill ends the creation: before the header, before the file has its name, and before it has
/// lost the other one.
#[cfg(unix)]
#[test]
fn what_a_killed_creation_has_left_is_reclaimed() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let (path, left) = (folder.0.join("entries.pool"), folder.0.join(".entries.pool.0123abcd.partial"));
    let require_one_pool = || {
        assert_eq!(names(&folder.0), ["entries.pool", "register"]);
        assert_eq!(names(&folder.0.join("register")).len(), 1);
    };

    fs::write(&left, []).unwrap();
    drop(open(&folder, &secret).unwrap());
    require_one_pool();

    let before = register(&folder);
    fs::rename(&path, &left).unwrap();
    let mut file = PoolFile::open(&folder.file(4), &*secret, 1, rng(7)).unwrap();
    require_one_pool();
    assert_ne!(register(&folder), before);

    file.store(&*secret, &zeros(&secret, 3)).unwrap();
    drop(file);
    fs::hard_link(&path, &left).unwrap();
    assert_eq!(open(&folder, &secret).unwrap().len().unwrap(), 3);
    require_one_pool();

    // One that another process is making stays, and so does a register that the leftover cannot prove to be its own.
    let (making, _file) = TemporaryFile::beside(&path, true).unwrap();
    let mut options = folder.file(4);
    options.path = folder.0.join("other.pool");
    drop(PoolFile::open(&options, &*secret, 1, rng(8)).unwrap());
    fs::rename(&options.path, &left).unwrap();
    let mut foreign = folder.file(4);
    foreign.key = Zeroizing::new([8; 32]);
    assert_eq!(problem(PoolFile::open(&foreign, &*secret, 1, rng(6))), FileProblem::Key);
    assert!(making.path().exists());
    assert!(!left.exists());
    assert_eq!(names(&folder.0.join("register")).len(), 2);
}

/// Where a link led to nothing, the file was created again and again.
#[cfg(unix)]
#[test]
fn a_link_that_leads_to_nothing_yet_stays_one() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    fs::create_dir(folder.0.join("far")).unwrap();
    std::os::unix::fs::symlink("far/file", folder.0.join("entries.pool")).unwrap();
    open(&folder, &secret).unwrap().store(&*secret, &zeros(&secret, 2)).unwrap();
    assert!(folder.0.join("entries.pool").is_symlink());
    assert_eq!(names(&folder.0.join("far")), ["file"]);
    assert_eq!(open(&folder, &secret).unwrap().len().unwrap(), 2);
}

/// Seeds of all entries that an opener gets until its register has none left, one at a time. An erased entry gives an
/// error, and no other error occurs.
fn drain(file: &mut PoolFile, key: &SecretKey, before_each: impl Fn()) -> Vec<[u8; 32]> {
    let mut seeds = Vec::new();
    loop {
        before_each();
        match file.take(key, 1) {
            Ok(taken) if taken.is_empty() => return seeds,
            Ok(taken) => seeds.extend(taken.iter().map(|zero| zero.seed.0)),
            Err(PoolError::File { problem: FileProblem::Tampered { .. }, .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// The register is copied while its entries are taken, and its copy is used at once: another lock for the same data
/// file.
#[test]
fn a_copied_register_gives_nothing_twice() {
    const ENTRIES: usize = 8;
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let entries = zeros(&secret, ENTRIES * 128);
    let where_copied = |round: usize| folder.0.join(format!("copy {round}"));
    let mut file = PoolFile::open(&folder.file(ENTRIES as u64), &*secret, 1, rng(6)).unwrap();
    let mut seen = HashMap::new();
    for (round, zeros) in entries.chunks(ENTRIES).enumerate() {
        assert_eq!(file.store(&*secret, zeros).unwrap(), ENTRIES);
        let original = register(&folder);
        let copy = || {
            let mut options = folder.file(ENTRIES as u64);
            let copied = options.register.insert(where_copied(round));
            fs::create_dir(&copied).unwrap();
            fs::copy(&original, copied.join(original.file_name().unwrap())).unwrap();
            PoolFile::open(&options, &*secret, 1, rng(7)).unwrap()
        };
        // In most rounds the copy exists first, and both ask for each entry at the same moment; in the others it is
        // made while the other one takes.
        let (barrier, together) = (Barrier::new(2), round % 4 != 3);
        let before_each = || {
            if together {
                barrier.wait();
            }
        };
        let early = together.then(copy);
        let seeds = std::thread::scope(|scope| {
            let copied = scope.spawn(|| drain(&mut early.unwrap_or_else(copy), &secret, before_each));
            let mut seeds = drain(&mut file, &secret, before_each);
            seeds.extend(copied.join().unwrap());
            seeds
        });
        seeds.into_iter().for_each(|seed| *seen.entry(seed).or_insert(0) += 1);
    }
    assert!(seen.values().all(|&count| count == 1), "an entry was given twice");
    // Each entry reaches exactly one of the two.
    assert_eq!(seen.len(), entries.len());
}

#[test]
fn a_pool_fills_its_file_and_finds_it_again() {
    let (folder, parameters) = (Folder::new(), parameters());
    let (secret, _) = keys(&parameters);
    let with_file = |threads| {
        let mut options = options(2, threads, WhenEmpty::Encrypt);
        options.file = Some(folder.file(20));
        pool(&secret, options)
    };
    let mut seen = HashSet::new();
    let first = with_file(1);
    while first.in_file().unwrap() != Some(20) {
        std::thread::yield_now();
    }
    seen.extend((0..5).map(|_| first.take().unwrap().seed));
    first.close().unwrap();
    assert_eq!(first.metrics().unwrap().failure, None);
    drop(first);
    let second = with_file(0);
    let stored = second.in_file().unwrap().unwrap() as usize;
    assert!(stored > 0);
    assert_eq!(second.fill(2).unwrap(), 2);
    seen.extend((0..2).map(|_| second.take().unwrap().seed));
    assert_eq!(seen.len(), 7);
    assert_eq!(second.metrics().unwrap().hits, 2);
    assert_eq!(second.in_file().unwrap(), Some(stored as u64 - 2));
}
