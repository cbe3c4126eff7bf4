/**
 * The tensors of a file as columns: one flat buffer each, sent once. No object per tensor.
 *
 * Nested buffers break on the way through some hosts, and so may lengths: they are checked.
 */

/**
 * @typedef {{
 *   count: number,
 *   names: string[],
 *   dtypes: string[], dtype: Uint8Array | Uint16Array,
 *   shapes: number[][], shape: Uint32Array, shapeTexts: string[],
 *   nbytes: Float64Array, offset: Float64Array,
 *   id: BigUint64Array, hasId: Uint8Array,
 *   kinds: string[],
 *   nameBytes: ArrayBuffer,
 * }} Columns
 *   `offset` is NaN for a tensor that lies in no file. `kinds` has a colour group for each dtype.
 */

/**
 * @param {{ count: number, dtypes: string[], shapes: number[][], shape_texts: string[] }} header
 * @param {ArrayBuffer[]} buffers
 * @returns {Columns}
 */
export function decodeColumns(header, buffers) {
  const { count, dtypes, shapes } = header;
  const sizes = [null, count, 4 * count, 8 * count, 8 * count, 8 * count, count];
  sizes.forEach((size, at) => {
    const found = buffers[at]?.byteLength;
    if (found === undefined || (size !== null && found !== size)) {
      throw new Error(`column ${at} arrived with ${found} bytes, expected ${size}`);
    }
  });
  const [nameBytes, dtype, shape, nbytes, offset, id, hasId] = buffers;
  /** @type {string[]} */
  const names = JSON.parse(new TextDecoder().decode(nameBytes));
  if (names.length !== count) throw new Error(`${names.length} names for ${count} tensors`);
  return {
    count,
    names,
    dtypes,
    dtype: new Uint8Array(dtype),
    shapes,
    shape: new Uint32Array(shape),
    shapeTexts: header.shape_texts,
    nbytes: new Float64Array(nbytes),
    offset: new Float64Array(offset),
    id: new BigUint64Array(id),
    hasId: new Uint8Array(hasId),
    kinds: dtypes.map(kindOf),
    nameBytes,
  };
}

/**
 * The colour group of a dtype's text.
 *
 * @param {string} dtype
 */
export function kindOf(dtype) {
  if (dtype.startsWith("Bool")) return "bool";
  if (/^[IU]\d/.test(dtype)) return "int";
  if (/^(F16|BF16)/.test(dtype)) return "half";
  if (/^(F|Flex)\d/.test(dtype)) return "float";
  return "quant";
}
