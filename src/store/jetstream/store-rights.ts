import { bucketName, streamName } from "./bucket.ts";

/**
 * What the store's client publishes to, for each shard and no further. No right to change, purge or delete a stream, or
 * to remove a message: a node never does, so its key can't either.
 */
export const storePublishRights = (layout: { readonly epoch: string; readonly shards: number }): readonly string[] =>
  Array.from({ length: layout.shards }, (_, shard) => {
    const stream = streamName(layout.epoch, shard);
    return [
      `$KV.${bucketName(layout.epoch, shard)}.>`,
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.CREATE.${stream}`,
      `$JS.API.STREAM.MSG.GET.${stream}`,
      `$JS.API.DIRECT.GET.${stream}`,
      `$JS.API.CONSUMER.CREATE.${stream}.*`,
      `$JS.API.CONSUMER.DELETE.${stream}.*`,
      // A follower tells the server that it keeps up.
      `$JS.FC.${stream}.>`,
    ];
  }).flat();
