use std::time::Instant;

use keywright_bench::measuring::rng;
use keywright_ring::{Evaluation, Poly, Seed, StreamId, rotation_element};
use keywright_rlwe::derive::{MasterKeys, MasterParameters};
use keywright_rlwe::{
    Decomposed, Finish, KeyElement, KeyGenerator, KeySpec, Parameters, ParametersLiteral, SecretKey,
    SwitchingKey, decrypt, noise, threads,
};
use keywright_wire::Wire;

use crate::StudyError;

/// Parameters of 256 keys that are derived from master keys and checked.
#[derive(Debug, Clone)]
pub struct DerivedRequest {
    /// Steps of the rotations with a master key.
    pub masters: Vec<i64>,
    /// Steps of the rotations whose keys are derived.
    pub targets: Vec<i64>,
    /// Widths of the extra primes.
    pub extra_bits: Vec<u32>,
    /// Primes of a digit of the derived keys.
    pub alpha: usize,
    /// Largest number of derivations to a key.
    pub max_hops: usize,
}

/// The result.
#[derive(Debug, Clone)]
pub struct DerivedRecord {
    /// Master keys.
    pub masters: usize,
    /// Number of requested keys, and of all derived keys.
    pub keys: [usize; 2],
    /// Number of keys from which others were derived.
    pub decomposed: usize,
    /// Largest number of derivations to a key.
    pub depth: usize,
    /// Bytes of the master keys in the form that is sent.
    pub sent_bytes: u64,
    /// Bytes of the keys if their owner makes and sends them, seeded and not.
    pub conventional_bytes: [u64; 2],
    /// Bits of the modulus of a master key.
    pub modulus_bits: f64,
    /// Seconds in which the client makes the master keys.
    pub client: Seconds,
    /// Seconds in which the client would make all keys, from the mean of four.
    pub conventional: Seconds,
    /// Seconds in which the server derives all keys, without the checks.
    pub server: Seconds,
    /// Threads of the server.
    pub threads: usize,
    /// Largest error of a rotation of a uniform polynomial at the top level, as a part of its bound, over all keys.
    pub worst: f64,
    /// log2 of the largest bound on the error of such a rotation, and of one with a key that its owner made.
    pub bound_bits: [f64; 2],
}

/// Time of some work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seconds {
    /// Wall-clock time.
    pub wall: f64,
    /// Time of all processors together; NaN if the system does not tell it.
    pub processor: f64,
}

impl Seconds {
    /// Adds the time of `work`.
    fn of<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (start, before) = (Instant::now(), processor_seconds());
        let out = work();
        self.wall += start.elapsed().as_secs_f64();
        self.processor += processor_seconds() - before;
        out
    }

    fn json(self) -> String {
        let Self { wall, processor } = self;
        let processor = if processor.is_nan() { "null".into() } else { format!("{processor:.2}") };
        format!(r#"{{"wall_s":{wall:.2},"processor_s":{processor}}}"#)
    }
}

/// Processor time of all threads of this process, to a hundredth of a second: Linux's `/proc/self/stat`, whose ticks
/// are 100 a second on every architecture.
fn processor_seconds() -> f64 {
    let read = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The program's name, in brackets, may contain spaces. The state is field 3, user and system time are 14 and
        // 15.
        let mut ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut next = || ticks.next()?.parse::<f64>().ok();
        Some((next()? + next()?) / 100.0)
    };
    read().unwrap_or(f64::NAN)
}

impl DerivedRecord {
    /// The result as one line.
    pub fn json(&self) -> String {
        let Self { masters, keys, decomposed, depth, sent_bytes, conventional_bytes, .. } = self;
        format!(
            concat!(
                r#"{{"masters":{},"keys":{},"derived":{},"decomposed":{},"depth":{},"sent_bytes":{},"#,
                r#""conventional_seeded_bytes":{},"conventional_bytes":{},"modulus_bits":{:.1},"client":{},"#,
                r#""conventional":{},"server":{},"threads":{},"worst_of_bound":{:.3},"#,
                r#""bound_bits":{:.2},"bound_bits_of_direct":{:.2}}}"#
            ),
            masters,
            keys[0],
            keys[1],
            decomposed,
            depth,
            sent_bytes,
            conventional_bytes[0],
            conventional_bytes[1],
            self.modulus_bits,
            self.client.json(),
            self.conventional.json(),
            self.server.json(),
            self.threads,
            self.worst,
            self.bound_bits[0],
            self.bound_bits[1],
        )
    }
}

/// 256 rotations as in a network: 48 to each side, powers of two, and others spread over all slots.
pub fn spread_rotations(log_n: u32) -> Vec<i64> {
    let slots = 1i64 << (log_n - 1);
    let near = (1..=48).flat_map(|k| [k, slots - k]);
    let mut steps: Vec<i64> = near.chain((6..log_n - 1).map(|i| 1 << i)).collect();
    // A full-period generator modulo a power of two (Knuth, volume 2, 3.2.1.2); its high bits.
    let mut state: u64 = 1;
    while steps.len() < 256 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let step = (state >> 40) as i64 % slots;
        if step != 0 && !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// The error of rotating a uniform polynomial at the key's level, and its bound.
fn rotation_error(secret: &SecretKey, key: &SwitchingKey) -> Result<(f64, f64), StudyError> {
    let (parameters, level) = (key.parameters(), key.spec().level);
    let (ring, backend) = (parameters.ring(), parameters.ring().backend());
    let KeyElement::Galois(g) = key.spec().element else {
        return Err(StudyError::Wrong(format!("{} is no rotation", key.spec().element)));
    };
    let mut c = Poly::<Evaluation>::unspecified(parameters.n(), level + 1);
    for (i, limb) in c.limbs_mut().enumerate() {
        let id = StreamId { object: g, digit: 0, limb: i as u16 };
        backend.expand_uniform(&Seed([17; 32]), id, parameters.modulus(i), limb);
    }
    let plan = parameters.switch_plan(key.spec(), level, 1, false)?;
    let decomposed = Decomposed::new(parameters, plan.clone(), &c)?;
    let automorphism = parameters.automorphism(g)?;
    let finish = [Finish { addend: [None, None], automorphism: Some(&automorphism) }];
    let rows = decomposed.rows_of(key, 1)?;
    let mut switched = decomposed.switch(&[(key, rows)], &finish).remove(0);
    for (i, limb) in switched.polys[0].limbs_mut().enumerate() {
        let (mut product, mut image) = (vec![0; c.n()], vec![0; c.n()]);
        backend.mul(ring.modulus(i), c.limb(i), secret.limb(i), &mut product);
        backend.permute(&automorphism, &product, &mut image);
        backend.sub_assign(ring.modulus(i), limb, &image);
    }
    let error = decrypt(secret, &switched, 2);
    let centred = |i: usize| error.limb(i).iter().map(move |&x| parameters.modulus(i).centered(x));
    let agree = centred(0).eq(centred(1));
    let largest = centred(0).map(i64::unsigned_abs).max().unwrap_or(0) as f64;
    let seen = if agree { largest } else { f64::INFINITY };
    Ok((seen, noise::bound(noise::key_switch(parameters, &plan, key))))
}

/// Makes master keys, derives all keys from them and checks each. The setting is that of the published comparison at
/// `N = 2^16`: 55 + 27 * 40 bits of ciphertext primes, four special primes of 55 bits.
///
/// # Errors
/// [`StudyError::Wrong`] if a rotation with a derived key exceeds its bound; errors of the engine.
pub fn run_derived(request: &DerivedRequest) -> Result<DerivedRecord, StudyError> {
    let mut q = vec![40; 28];
    q[0] = 55;
    let parameters = Parameters::new(ParametersLiteral::from_bits(16, &q, &[55; 4])?)?;
    let secret = SecretKey::sample(&parameters, &mut rng(1))?;
    let chain = MasterParameters::from_bits(&parameters, &request.extra_bits)?;
    let elements: Vec<u64> = request.masters.iter().map(|&k| rotation_element(16, k)).collect();
    let level = parameters.max_level();
    let mut client = Seconds::default();
    let masters = client.of(|| MasterKeys::generate(&chain, &secret, rng(2), &elements, level))?;

    let spec = |&steps: &i64| KeySpec {
        element: KeyElement::Galois(rotation_element(16, steps)),
        level,
        alpha: request.alpha,
        special: parameters.special_primes().collect(),
        seeded: true,
        subring: None,
    };
    let specs: Vec<KeySpec> = request.targets.iter().map(spec).collect();
    let mut generator = KeyGenerator::new(&secret, rng(3));
    let (mut four, sample) = (Seconds::default(), specs.len().min(4));
    let direct = four.of(|| {
        specs[..sample].iter().map(|spec| generator.switching_key(spec)).collect::<Result<Vec<_>, _>>()
    })?;
    let each = specs.len() as f64 / sample.max(1) as f64;
    let conventional = Seconds { wall: four.wall * each, processor: four.processor * each };
    let direct_bound = match direct.first() {
        Some(key) => rotation_error(&secret, key)?.1,
        None => 1.0,
    };
    drop(direct);

    let mut server = Seconds::default();
    let mut derivation = server.of(|| masters.derive(&specs, request.max_hops))?;
    let (mut derived, mut decomposed, mut depth) = (0, 0, 0);
    for (_, tree) in derivation.plan().trees() {
        derived += tree.steps().len();
        decomposed += tree.parents();
        depth = depth.max(tree.depth());
    }
    let (mut worst, mut bound_bits, mut made) = (0.0f64, 0.0f64, 0);
    loop {
        let Some(key) = server.of(|| derivation.next()).transpose()? else { break };
        let (seen, bound) = rotation_error(&secret, &key)?;
        if seen > bound {
            return Err(StudyError::Wrong(format!("{:?}: error {seen} above {bound}", key.spec().element)));
        }
        worst = worst.max(seen / bound);
        bound_bits = bound_bits.max(bound.log2());
        made += 1;
    }
    let bits = |spec: &KeySpec| chain.chain().log2_q(spec.level) + spec.special_bits(chain.chain());
    let seeded =
        specs.iter().map(|spec| spec.bytes(&parameters).map(|bytes| bytes as u64)).sum::<Result<u64, _>>()?;
    Ok(DerivedRecord {
        masters: elements.len(),
        keys: [made, derived],
        decomposed,
        depth,
        sent_bytes: masters.encoded_len(&parameters)?,
        conventional_bytes: [seeded, 2 * seeded],
        modulus_bits: masters.keys().iter().map(|key| bits(key.spec())).fold(0.0, f64::max),
        client,
        conventional,
        server,
        threads: threads(),
        worst,
        bound_bits: [bound_bits, direct_bound.log2()],
    })
}
