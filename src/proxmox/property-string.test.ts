// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatProperties, parseProperties } from './vm-config.ts';

describe('property strings', () => {
  it('are parsed with a default key', () => {
    expect(Object.fromEntries(parseProperties('virtio,bridge=vmbr0, tag=5', 'model'))).toEqual({
      model: 'virtio',
      bridge: 'vmbr0',
      tag: '5',
    });
    expect(parseProperties('', 'model').size).toBe(0);
    expect(parseProperties('local:1/vm-1-disk-0.raw,size=2G', 'file').get('size')).toBe('2G');
  });

  it('are formatted without undefined values', () => {
    expect(formatProperties('local:0', { iothread: true, discard: 'on', cache: undefined })).toBe(
      'local:0,iothread=1,discard=on',
    );
    expect(formatProperties(undefined, { uuid: 'x' })).toBe('uuid=x');
  });
});
