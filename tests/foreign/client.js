// A participant of the mesh in JavaScript: docs/reference/wire-format.md is all it knows of it.
//
//   node client.js say      emits one ApplicationRegistered and waits for its decision
//   node client.js follow   reads mesh.catalog from POSITION on, until QUIET_MS without a record
//
// Settings come from the environment: BOOTSTRAP, MESH_USER, MESH_PASSWORD, DOMAIN, KEY_FILE,
// ROOT_KEY, GOVERNOR_KEY, REGISTRY, APPLICATION, POSITION, and APPENDS, how often the very same
// record is produced, as after an answer of Kafka that was lost. Prints one JSON object per line.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const avro = require("avsc");
const { Kafka, logLevel } = require("kafkajs");

const env = process.env;
const LOG = "mesh.governance";
const QUIET_MS = 1500;
const DECISIONS = ["mesh.IntentAccepted", "mesh.IntentRejected", "mesh.IntentQuarantined", "mesh.RecordsSetAside"];
const NEEDED = ["mesh.ApplicationRegistered", "mesh.GovernorStarted", ...DECISIONS];
const kafka = new Kafka({
  clientId: env.DOMAIN,
  brokers: env.BOOTSTRAP.split(","),
  sasl: { mechanism: "scram-sha-512", username: env.MESH_USER, password: env.MESH_PASSWORD },
  logLevel: logLevel.NOTHING,
});

const print = (line) => process.stdout.write(JSON.stringify(line) + "\n");

// --- Avro: the log brings its own schemas ------------------------------------------------------

const types = new Map(); // schema id -> type, as introduced on the log

function learn(id, text) {
  types.set(id, avro.Type.forSchema(JSON.parse(text), { registry: {} }));
}

function decode(value) {
  if (value === null || value.length < 5 || value[0] !== 0) return null;
  const type = types.get(value.readUInt32BE(1));
  if (!type) return null;
  try {
    return { type: type.name, event: type.fromBuffer(value.subarray(5)) };
  } catch {
    return null; // what is not Avro has been set aside by a decision
  }
}

function encode(name, event) {
  for (const [id, type] of types) {
    if (type.name !== name) continue;
    const head = Buffer.alloc(5);
    head.writeUInt32BE(id, 1);
    return Buffer.concat([head, type.toBuffer(event)]);
  }
  throw new Error(`${name} was not introduced on the log`);
}

// The first record introduces the schema of introductions, and is read by hand: of its fields
// only the schema's text is needed, which comes last.
function bootstrap(value) {
  const start = value.indexOf('{"type":"record","name":"SchemaIntroduced"');
  learn(value.readUInt32BE(1), value.subarray(start).toString("utf8"));
}

// --- signatures --------------------------------------------------------------------------------

const CONTEXT = Buffer.from("streaming-data-mesh record v1\0", "ascii");

function signedBytes(key, value) {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(key.length);
  const root = Buffer.from(env.ROOT_KEY, "base64url");
  return Buffer.concat([CONTEXT, root, length, key, value]);
}

function privateKey(file) {
  const seed = Buffer.from(fs.readFileSync(file, "ascii").trim(), "base64url");
  // PKCS #8 of an Ed25519 key: a fixed head, then the 32 bytes
  const head = Buffer.from("302e020100300506032b657004220420", "hex");
  return crypto.createPrivateKey({
    key: Buffer.concat([head, seed]),
    format: "der",
    type: "pkcs8",
  });
}

function publicText(key) {
  return crypto.createPublicKey(key).export({ format: "jwk" }).x;
}

function verifies(text, message) {
  const key = crypto.createPublicKey({
    key: { kty: "OKP", crv: "Ed25519", x: text },
    format: "jwk",
  });
  const bytes = signedBytes(message.key, message.value);
  return crypto.verify(null, bytes, key, message.headers.mesh_signature);
}

// --- the log -----------------------------------------------------------------------------------

function uuidv7() {
  const bytes = crypto.randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  const hex = bytes.toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// Calls `each` for every record of a topic from an offset on, until it returns true.
async function read(topic, offset, each) {
  const consumer = kafka.consumer({
    groupId: `${env.MESH_USER}.${crypto.randomUUID()}`,
    readUncommitted: true,
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  try {
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
      consumer
        .run({
          autoCommit: false,
          eachMessage: async ({ message }) => {
            if (BigInt(message.offset) < BigInt(offset)) return;
            if (await each(message)) resolve();
          },
        })
        .catch(reject);
      consumer.seek({ topic, partition: 0, offset: String(offset) });
    });
  } finally {
    await consumer.disconnect();
  }
}

// Whether a decision is on the record at an offset: a range is on all but its exceptions.
function decides({ type, event }, offset) {
  if (type !== "mesh.RecordsSetAside") return Number(event.offset) === offset;
  const last = Math.min(Number(event.last), Number(event.basis));
  return (
    Number(event.offset) <= offset && offset <= last && !event.exceptions.map(Number).includes(offset)
  );
}

const DUPLICATE = "duplicate_intent";

// Whether a decision judges a record; otherwise it sets it aside, perhaps as a copy of another one.
function judges({ type, event }) {
  if (type === "mesh.IntentAccepted") return true;
  return type === "mesh.IntentRejected" && event.code !== DUPLICATE;
}

function codeOf(event) {
  if (event.code !== undefined) return event.code;
  const codes = Object.keys(event.counts ?? {});
  return codes.length > 1 ? "records_set_aside" : (codes[0] ?? "");
}

async function say() {
  await read(LOG, 0, (message) => {
    if (message.offset === "0") {
      const signer = message.headers.mesh_key?.toString();
      if (signer !== env.ROOT_KEY || !verifies(signer, message)) {
        throw new Error(`this log is not that of the mesh of ${env.ROOT_KEY}`);
      }
      bootstrap(message.value);
    }
    const found = decode(message.value);
    if (found?.type === "mesh.SchemaIntroduced") {
      learn(Number(found.event.schema_id), found.event.schema_text);
    }
    const names = [...types.values()].map((type) => type.name);
    return NEEDED.every((name) => names.includes(name));
  });

  const id = uuidv7();
  const event = {
    meta: {
      id,
      time: Date.now(),
      actor: "foreign-1",
      domain: env.DOMAIN,
      correlation: id,
      causation: null,
      producer: "foreign/1",
    },
    application: env.APPLICATION,
    description: "written without the mesh's own code",
  };
  const signer = privateKey(env.KEY_FILE);
  const key = Buffer.from(`application/${env.APPLICATION.replace(".", "/")}`);
  const value = encode("mesh.ApplicationRegistered", event);
  const record = {
    key,
    value,
    partition: 0,
    headers: {
      ce_specversion: "1.0",
      ce_id: id,
      ce_type: "mesh.ApplicationRegistered.intent",
      ce_source: `mesh/${env.DOMAIN}`,
      "content-type": "application/avro",
      mesh_key: publicText(signer),
      mesh_signature: crypto.sign(null, signedBytes(key, value), signer),
    },
  };
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  let place;
  for (let count = 0; count < Number(env.APPENDS ?? 1); count += 1) {
    const [{ baseOffset }] = await producer.send({ topic: LOG, acks: -1, messages: [record] });
    place = Number(baseOffset);
  }
  await producer.disconnect();
  print({ said: id, offset: place });

  // a decision counts under the latest start of a governor, if it follows the one that counted last;
  // a start counts behind the one that it names: any other is a copy, which anybody can append, or
  // stands beside another one. Starts and decisions are read from the beginning. Of the records with the same bytes one is judged:
  // that is the answer, and that all of them were set aside is one only if none is a copy
  const starts = new Set();
  const decided = [];
  let epoch = -1;
  let last = null;
  const same = [];
  await read(LOG, 0, (message) => {
    if (
      message.headers.mesh_key?.toString() === publicText(signer) &&
      message.key?.equals(key) &&
      message.value?.equals(value)
    ) {
      same.push(Number(message.offset));
    }
    if (message.headers.mesh_key?.toString() !== env.GOVERNOR_KEY) return false;
    const found = decode(message.value);
    if (found?.type !== "mesh.GovernorStarted" && !DECISIONS.includes(found?.type)) return false;
    if (!verifies(env.GOVERNOR_KEY, message)) return false;
    const { event } = found;
    const at = Number(message.offset);
    if (found.type === "mesh.GovernorStarted") {
      const before = event.previous_epoch;
      if (before !== null && Number(before) !== epoch) return false;
      if (starts.has(event.meta.id)) return false;
      starts.add(event.meta.id);
      [epoch, last] = [at, event.meta.id];
      return false;
    }
    const basis = Number(event.basis);
    if (Number(event.epoch) !== epoch || event.follows !== last) return false;
    if (basis < epoch || basis >= at) return false;
    if (found.type === "mesh.RecordsSetAside") {
      if (Number(event.last) > basis) return false;
    } else if (decided.some((one) => decides(one, Number(event.offset)))) return false;
    last = event.meta.id;
    decided.push(found);
    const codes = Object.keys(event.counts ?? { [event.code]: 1 });
    const judged = judges(found) && same.some((one) => decides(found, one));
    const isCopy = same.length > 1 && codes.includes(DUPLICATE);
    const refused = decides(found, place) && !isCopy;
    if (!judged && !refused) return false;
    print({ decision: found.type, offset: at, code: codeOf(event) });
    return true;
  });
}

async function follow() {
  // rows are read with the registry's schemas, as any Kafka tool does
  const known = new Map();
  const rowType = async (id) => {
    if (!known.has(id)) {
      const answer = await fetch(`${env.REGISTRY}/schemas/ids/${id}`);
      const { schema } = answer.ok ? await answer.json() : {};
      known.set(id, schema ? avro.Type.forSchema(JSON.parse(schema), { registry: {} }) : null);
    }
    return known.get(id);
  };
  // whatever is not a row is passed over: the mesh writes the right one behind it
  const rowOf = async (value) => {
    if (value === null || value.length < 5 || value[0] !== 0) return null;
    const type = await rowType(value.readUInt32BE(1));
    if (type === null) return null;
    try {
      return type.fromBuffer(value.subarray(5));
    } catch {
      return null;
    }
  };
  let heard = Date.now();
  const reading = read("mesh.catalog", Number(env.POSITION), async (message) => {
    heard = Date.now();
    const row = await rowOf(message.value);
    if (row === null) return false;
    print({ position: Number(message.offset), key: message.key.toString(), owner: row.owner });
    return false;
  });
  const quiet = (async () => {
    while (Date.now() - heard < QUIET_MS) await new Promise((done) => setTimeout(done, 100));
  })();
  await Promise.race([reading, quiet]);
}

({ say, follow })[process.argv[2]]()
  .then(() => process.exit(0))
  .catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
